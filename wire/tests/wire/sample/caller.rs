//! Callers, and the audit log.

use everturn_wire::{
    AuditEntry, AuditLog, CallerInfo, CallerLimits, CallerList, MadeToken, NewCaller, NewToken, Priority,
};

pub(crate) fn limits() -> CallerLimits {
    CallerLimits {
        requests_per_minute: Some(60),
        tokens_per_minute: Some(10_000),
        tokens_per_day: Some(1_000_000),
        parallel: Some(4),
        money_per_day: Some(2.5),
        models: vec!["main/*".into()],
        priority: Some(Priority::Background),
    }
}

fn info() -> CallerInfo {
    CallerInfo {
        name: "ann".into(),
        scopes: vec!["chat".into(), "calls".into()],
        status: "valid".into(),
        until: Some("2027-01-31".into()),
        configured: false,
        limits: limits(),
    }
}

pub(crate) fn list() -> CallerList {
    let bare = CallerInfo { until: None, configured: true, limits: CallerLimits::default(), ..info() };
    CallerList { callers: vec![bare, info()] }
}

pub(crate) fn new() -> [NewCaller; 2] {
    let CallerInfo { name, scopes, until, limits, .. } = info();
    [NewCaller { name: name.clone(), ..NewCaller::default() }, NewCaller { name, scopes, until, limits }]
}

pub(crate) fn new_tokens() -> [NewToken; 2] {
    [NewToken::default(), NewToken { until: Some("2027-01-31".into()) }]
}

pub(crate) fn made() -> MadeToken {
    MadeToken { token: "evt_0123".into(), caller: info() }
}

pub(crate) fn log() -> AuditLog {
    let entry = AuditEntry {
        id: 1_700_000_000_000_000,
        at: "2026-11-26T09:12:40.120Z".into(),
        action: "sign-in".into(),
        outcome: "401".into(),
        ..AuditEntry::default()
    };
    let full = AuditEntry {
        who: Some("boss".into()),
        object: Some("plans@ann".into()),
        why: Some("this server does not know this token".into()),
        from: Some("10.0.0.7".into()),
        left_out: 3,
        ..entry.clone()
    };
    AuditLog { entries: vec![full, entry] }
}
