use async_trait::async_trait;
use everturn_kernel::{ToolAnswer, ToolSpec};
use everturn_wire::{ToolSourceStatus, Value};
use tokio::{sync::watch, time::Instant};

use super::*;
use crate::tool::{Invocation, SourceState};

/// Says what it is.
struct Named(&'static str, &'static str);

#[async_trait]
impl Tool for Named {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: self.0.to_owned(), description: self.1.to_owned(), parameters: Value::Null }
    }

    async fn run(&self, _: Invocation) -> ToolAnswer {
        ToolAnswer::ok(self.1)
    }
}

/// Offers what it is given; is starting as long as that is nothing.
struct Source(&'static str, watch::Sender<Listed>);

impl Source {
    fn new(name: &'static str, tools: &[&'static str]) -> Arc<Self> {
        Arc::new(Self(name, watch::Sender::new(listed(name, tools))))
    }

    fn put(&self, tools: &[&'static str]) {
        self.1.send_replace(listed(self.0, tools));
    }
}

fn listed(of: &'static str, tools: &[&'static str]) -> Listed {
    tools.iter().map(|name| Arc::new(Named(name, of)) as Arc<dyn Tool>).collect()
}

#[async_trait]
impl ToolSource for Source {
    fn name(&self) -> &str {
        self.0
    }

    fn tools(&self) -> Listed {
        self.1.borrow().clone()
    }

    fn state(&self) -> SourceState {
        SourceState { status: ToolSourceStatus::Up, message: None, login: None }
    }

    fn may_offer(&self, name: &str) -> bool {
        name.starts_with(self.0)
    }

    async fn settled(&self) {
        let _ = self.1.subscribe().wait_for(|tools| !tools.is_empty()).await;
    }
}

fn toolbox(own: &[&'static str], sources: &[Arc<Source>]) -> Toolbox {
    let sources = sources.iter().map(|source| source.clone() as Arc<dyn ToolSource>).collect();
    Toolbox::new(listed("own", own).to_vec(), sources)
}

fn names(tools: &ToolSet) -> Vec<&str> {
    tools.names().collect()
}

#[test]
fn what_a_turn_is_offered_changes_with_the_sources() {
    let source = Source::new("a", &["a1"]);
    let toolbox = toolbox(&["own"], std::slice::from_ref(&source));
    let first = toolbox.current();
    assert!(first.is(&toolbox.current()), "nothing is made anew as long as nothing changes");
    source.put(&["a1", "a2"]);
    assert_eq!((names(&first), names(&toolbox.current())), (vec!["a1", "own"], vec!["a1", "a2", "own"]));
}

#[test]
fn no_source_takes_the_place_of_another_tool() {
    let sources = [Source::new("a", &["x", "y"]), Source::new("b", &["y", "z"])];
    let toolbox = toolbox(&["x"], &sources);
    let tools = toolbox.current();
    let of = |name: &str| tools.get(name).unwrap().spec().description;
    assert_eq!([of("x"), of("y"), of("z")], ["own", "a", "b"]);
    let told = toolbox.told(&|_, tool| tool.policy());
    let shown = |tools: &[ToolInfo]| tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
    assert_eq!(
        (shown(&told.tools), shown(&told.sources[0].tools)),
        (vec!["x".to_owned()], vec!["y".to_owned()])
    );
    let message = |source: usize| told.sources[source].message.as_deref();
    assert_eq!(message(0), Some("x is not offered: another tool has that name"));
    assert_eq!(message(1), Some("y is not offered: another tool has that name"));
}

#[test]
fn turns_with_the_same_tools_share_what_defines_them() {
    let source = Source::new("a", &["a1"]);
    let toolbox = toolbox(&[], std::slice::from_ref(&source));
    let base = |prompt: &str| {
        let tools = Some(vec!["a1".to_owned()]);
        Arc::new(Configured { tools, system_prompt: Some(prompt.to_owned()), ..Configured::default() })
    };
    let (one, other) = (base("one"), base("other"));
    let defining = |base: &Arc<Configured>| toolbox.defining(base.clone(), &toolbox.current());
    assert!(Arc::ptr_eq(&defining(&one), &one), "what it was configured with, as long as that is right");
    let old = toolbox.current();
    source.put(&["a1", "a2"]);
    let (first, second) = (defining(&one), defining(&one));
    assert!(Arc::ptr_eq(&first, &second));
    let tools = |configured: &Configured| configured.tools.clone().unwrap();
    assert_eq!(
        (tools(&first), first.system_prompt.as_deref()),
        (vec!["a1".to_owned(), "a2".to_owned()], Some("one"))
    );
    assert_eq!(defining(&other).system_prompt.as_deref(), Some("other"));
    assert_eq!(tools(&toolbox.defining(first, &old)), ["a1"], "whatever has changed since the turn began");
}

#[tokio::test(start_paused = true)]
async fn only_sources_that_may_offer_what_is_missing_are_waited_for() {
    let (up, starting) = (Source::new("up", &["up1"]), Source::new("starting", &[]));
    let toolbox = toolbox(&["own"], &[up, starting.clone()]);
    let waits = async |names: &[&str]| {
        let (begun, names) =
            (Instant::now(), names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        toolbox.settled(&names).await;
        begun.elapsed()
    };
    assert_eq!(waits(&["own", "up1", "up2", "gone"]).await, Duration::ZERO);
    assert_eq!(waits(&["own", "starting1"]).await, SETTLING);
    starting.put(&["starting1"]);
    assert_eq!(waits(&["starting2"]).await, Duration::ZERO);
}
