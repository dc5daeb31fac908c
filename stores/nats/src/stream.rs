//! The stream: how it is created, and what an existing one must not do.

use std::time::Duration;

use async_nats::jetstream::stream::{
    Compression, Config, DiscardPolicy, PersistenceMode, Republish, RetentionPolicy, StorageType,
};

use crate::names::Names;

/// The smallest maximum size of a message that can be used, in bytes.
const SMALLEST: i32 = 1 << 20;

/// Returns the configuration of a new stream.
pub(crate) fn config(names: &Names, replicas: usize) -> Config {
    Config {
        name: names.stream(),
        description: Some("Everturn's journal: never let it delete messages by itself".to_owned()),
        subjects: vec![names.all_appends(), names.all_titles(), names.all_parts()],
        retention: RetentionPolicy::Limits,
        // A full stream refuses appends. Discarding old messages would cut conversations.
        discard: DiscardPolicy::New,
        max_messages: -1,
        max_messages_per_subject: -1,
        max_bytes: -1,
        max_message_size: -1,
        max_consumers: -1,
        storage: StorageType::File,
        num_replicas: replicas,
        allow_direct: true,
        // What marks a deleted conversation expires.
        allow_message_ttl: true,
        republish: Some(republish(names)),
        compression: Some(Compression::S2),
        ..Config::default()
    }
}

fn republish(names: &Names) -> Republish {
    Republish { source: names.all_appends(), destination: names.all_live(), headers_only: false }
}

/// Returns the first setting with which a stream cannot hold a journal: the setting, what it is, and what is needed.
pub(crate) fn unfit(found: &Config, names: &Names) -> Option<String> {
    let needs = |setting: &str, is: String, needed: &str, why: &str| {
        Some(format!("{setting} is {is} and must be {needed}, {why}"))
    };
    let would_lose = "because it would delete parts of conversations";
    if found.retention != RetentionPolicy::Limits {
        return needs("retention", format!("{:?}", found.retention).to_lowercase(), "limits", would_lose);
    }
    if found.discard != DiscardPolicy::New {
        return needs("discard", "old".to_owned(), "new", would_lose);
    }
    if found.max_age != Duration::ZERO {
        return needs("max_age", format!("{:?}", found.max_age), "0 (unlimited)", would_lose);
    }
    // With `discard: new`, other limits refuse appends. One by subject would end conversations.
    if found.max_messages_per_subject > 0 {
        let is = found.max_messages_per_subject.to_string();
        return needs("max_msgs_per_subject", is, "-1", "because it would end conversations");
    }
    if found.storage != StorageType::File {
        return needs("storage", "memory".to_owned(), "file", "because a restart would lose everything");
    }
    if found.persist_mode == Some(PersistenceMode::Async) {
        let why = "because what is acknowledged would not be stored yet";
        return needs("persist_mode", "async".to_owned(), "default", why);
    }
    if (1..SMALLEST).contains(&found.max_message_size) {
        let why = "because appends are up to that large";
        return needs("max_msg_size", found.max_message_size.to_string(), "1 MiB or more", why);
    }
    let in_use = "because the journal uses it";
    let flags = [
        ("no_ack", found.no_ack, false),
        ("sealed", found.sealed, false),
        ("deny_delete", found.deny_delete, false),
        ("deny_purge", found.deny_purge, false),
        ("allow_direct", found.allow_direct, true),
        ("allow_msg_ttl", found.allow_message_ttl, true),
    ];
    if let Some((setting, is, needed)) = flags.into_iter().find(|(_, is, needed)| is != needed) {
        return needs(setting, is.to_string(), &needed.to_string(), in_use);
    }
    if found.mirror.is_some() || found.sources.as_ref().is_some_and(|sources| !sources.is_empty()) {
        return needs("mirror or sources", "set".to_owned(), "absent", "because only the journal may write");
    }
    if found.subject_transform.is_some() {
        return needs(
            "subject_transform",
            "set".to_owned(),
            "absent",
            "because the journal names its subjects",
        );
    }
    let wanted = config(names, 1);
    if let Some(missing) = wanted.subjects.iter().find(|subject| !found.subjects.contains(subject)) {
        return needs("subjects", found.subjects.join(", "), &format!("with {missing}"), in_use);
    }
    if found.republish != wanted.republish {
        let Republish { source, destination, .. } = republish(names);
        let needed = format!("from {source} to {destination}");
        return needs("republish", "another".to_owned(), &needed, "because subscribers follow appends there");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_would_lose_data_is_refused_with_the_setting() {
        let names = Names::new("ev").unwrap();
        let fit = config(&names, 3);
        assert_eq!(unfit(&fit, &names), None);
        assert_eq!(unfit(&Config { max_bytes: 1 << 30, ..fit.clone() }, &names), None, "it is only bounded");
        let unfits = [
            ("retention", Config { retention: RetentionPolicy::WorkQueue, ..fit.clone() }),
            ("discard", Config { discard: DiscardPolicy::Old, ..fit.clone() }),
            ("max_age", Config { max_age: Duration::from_secs(9), ..fit.clone() }),
            ("max_msgs_per_subject", Config { max_messages_per_subject: 1, ..fit.clone() }),
            ("storage", Config { storage: StorageType::Memory, ..fit.clone() }),
            ("persist_mode", Config { persist_mode: Some(PersistenceMode::Async), ..fit.clone() }),
            ("max_msg_size", Config { max_message_size: 1000, ..fit.clone() }),
            ("no_ack", Config { no_ack: true, ..fit.clone() }),
            ("sealed", Config { sealed: true, ..fit.clone() }),
            ("deny_delete", Config { deny_delete: true, ..fit.clone() }),
            ("deny_purge", Config { deny_purge: true, ..fit.clone() }),
            ("allow_direct", Config { allow_direct: false, ..fit.clone() }),
            ("allow_msg_ttl", Config { allow_message_ttl: false, ..fit.clone() }),
            ("subjects", Config { subjects: vec!["ev.c.*".to_owned()], ..fit.clone() }),
            ("republish", Config { republish: None, ..fit.clone() }),
        ];
        for (setting, config) in unfits {
            let found = unfit(&config, &names).unwrap();
            assert!(found.starts_with(&format!("{setting} is ")), "{setting}: {found}");
        }
    }
}
