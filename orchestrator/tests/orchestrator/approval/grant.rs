//! A tool that one person allows for the whole conversation, while another one denies the call.

use everturn_orchestrator::kernel::Settings;
use futures_util::FutureExt as _;

use super::*;

fn for_all(request: &ApprovalRequest) -> ApprovalAnswer {
    ApprovalAnswer { scope: Some(ApprovalScope::Conversation), ..reply(request, Verdict::Allowed) }
}

/// A turn that waits for a person.
async fn waiting(tool: &Write) -> (World, Watcher, ApprovalRequest) {
    let world = world(&[ask("write", &["a"]), answer("ok")], tool);
    let mut watcher = world.say("hi").await;
    asked(&mut watcher, "a").await;
    parked(&world).await;
    let request = pending(&world).await.remove(0);
    (world, watcher, request)
}

#[tokio::test(start_paused = true)]
async fn a_denial_that_came_first_leaves_no_permission_although_the_other_client_has_left() {
    let tool = Write::default();
    let (world, mut watcher, request) = waiting(&tool).await;
    let mut denies = Box::pin(says(&world, reply(&request, Verdict::Denied)));
    let mut allows = Box::pin(says(&world, for_all(&request)));
    assert!(denies.as_mut().now_or_never().is_none());
    assert!(allows.as_mut().now_or_never().is_none());
    drop(allows);
    assert!(denies.await);
    watcher.turn().await;
    assert_eq!(allowed_tools(&world).await, [""; 0]);
    assert!(tool.ran().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_permission_that_came_first_is_kept_although_its_client_has_left() {
    let tool = Write::default();
    let (world, mut watcher, request) = waiting(&tool).await;
    let mut allows = Box::pin(says(&world, for_all(&request)));
    let mut denies = Box::pin(says(&world, reply(&request, Verdict::Denied)));
    assert!(allows.as_mut().now_or_never().is_none());
    assert!(denies.as_mut().now_or_never().is_none());
    drop(allows);
    assert!(!denies.await);
    watcher.turn().await;
    assert_eq!(allowed_tools(&world).await, ["write"]);
    assert_eq!(tool.ran(), ["a"]);
}

/// A store of documents that has failed.
#[derive(Default)]
struct Failing(MemoryState);

#[async_trait]
impl StateStore for Failing {
    async fn read(&self, name: &str) -> Result<Option<String>, JournalError> {
        self.0.read(name).await
    }

    async fn write(&self, name: &str, _: String) -> Result<(), JournalError> {
        Err(JournalError::Storage(format!("{name} cannot be written")))
    }

    async fn delete(&self, name: &str) -> Result<(), JournalError> {
        self.0.delete(name).await
    }
}

#[tokio::test(start_paused = true)]
async fn who_allows_a_tool_for_good_is_told_if_only_the_call_was_allowed() {
    let tool = Write::default();
    let provider = Scripted::new([ask("write", &["a"]), answer("ok")]);
    let world = World::of(builder(provider).tool(tool.clone()).state(Arc::new(Failing::default())));
    let mut watcher = world.say("hi").await;
    asked(&mut watcher, "a").await;
    let error = world.orchestrator.answer_approval(&world.id, for_all(&pending(&world).await[0])).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("the call was allowed") && error.contains("will ask again"), "{error}");
    watcher.turn().await;
    assert_eq!((tool.ran(), allowed_tools(&world).await), (vec!["a".to_owned()], Vec::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_answers_at_once_the_permission_is_what_the_first_one_said() {
    const ROUNDS: usize = 200;
    let tool = Write::default();
    let calls = [ask("write", &["a"]), answer("ok")];
    let calls: Vec<_> = std::iter::repeat_n(calls, ROUNDS).flatten().collect();
    let shared = world(&calls, &tool);
    let (mut allowed, mut denied) = (0, 0);
    for round in 0..ROUNDS {
        let id = format!("c{round}").as_str().into();
        let world = Arc::new(World { orchestrator: shared.orchestrator.clone(), id });
        let mut watcher = world.say("hi").await;
        asked(&mut watcher, "a").await;
        let request = pending(&world).await.remove(0);
        let give = |answer: ApprovalAnswer| {
            let world = world.clone();
            tokio::spawn(async move { says(&world, answer).await })
        };
        let (allows, denies) = match round % 2 {
            0 => (give(for_all(&request)), give(reply(&request, Verdict::Denied))),
            _ => {
                let denies = give(reply(&request, Verdict::Denied));
                (give(for_all(&request)), denies)
            }
        };
        // Its client leaves at some time.
        for _ in 0..round % 7 {
            tokio::task::yield_now().await;
        }
        allows.abort();
        let was_denied = denies.await.unwrap();
        if !was_denied || allows.await.is_ok_and(|was_allowed| was_allowed) {
            allowed += 1;
        } else {
            denied += 1;
        }
        watcher.turn().await;
        assert_eq!(allowed_tools(&world).await.is_empty(), was_denied, "round {round}");
    }
    assert!(allowed + denied == ROUNDS && tool.ran().len() == allowed, "{allowed} {denied}");
}

/// Like `Write`, but takes a minute.
struct Slow(Write);

#[async_trait]
impl Tool for Slow {
    fn spec(&self) -> ToolSpec {
        self.0.spec()
    }

    fn policy(&self) -> Policy {
        Policy::Ask
    }

    async fn run(&self, call: Invocation) -> ToolAnswer {
        let answer = self.0.run(call).await;
        sleep(Duration::from_secs(60)).await;
        answer
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_has_not_started_needs_approval_again_once_its_tool_is_revoked() {
    let tool = Write::default();
    let calls = vec![ask("write", &["a"]), ask("write", &["b", "c"]), answer("ok")];
    let settings = Settings { max_parallel_tools: 1, ..Settings::default() };
    let world = World::of(builder(Scripted::new(calls)).tool(Slow(tool.clone())).settings(settings));
    let mut watcher = world.say("hi").await;
    asked(&mut watcher, "a").await;
    assert!(says(&world, for_all(&pending(&world).await[0])).await);
    sleep(Duration::from_secs(90)).await;
    assert_eq!(tool.ran(), ["a", "b"]);
    assert!(world.orchestrator.revoke_tool(&world.id, "write").await.unwrap());
    watcher.turn().await;
    assert_eq!(tool.ran(), ["a", "b"]);
    let told = "tool-result c (tool failed: the tool \"write\" needs approval now: call it again)";
    assert!(world.history().await.contains(&told.to_owned()), "{:?}", world.history().await);
}
