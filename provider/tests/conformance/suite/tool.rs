//! Tool calls, as models and gateways send them.

use std::collections::HashSet;

use everturn_kernel::{Arguments, FinishReason, StreamEvent, ToolCall};
use everturn_sim::{Loopback, Reply};
use serde_json::json;

use crate::dialect::{Asked, Dialect, Setup, call};

/// The calls of an answer that asks for these, which ends because of them. `None` where the API cannot carry them.
async fn asked<D: Dialect>(calls: &[Asked<'_>]) -> Option<Vec<ToolCall>> {
    let server = Loopback::start([Reply::sse(D::calls(calls)?)]).await;
    let mut facts = call(&D::provider(Setup::at(&server.base_url()))).await;
    assert_eq!(facts.pop(), Some(StreamEvent::Finished(FinishReason::ToolCalls)), "{facts:?}");
    let told = facts.into_iter().filter_map(|fact| match fact {
        StreamEvent::ToolCall(call) => Some(call),
        _ => None,
    });
    Some(told.collect())
}

pub(crate) async fn calls_take_turns<D: Dialect>() {
    let calls: [Asked<'_>; 3] =
        [("c0", "f", &["{\"a\":", "[1,", "2]}"]), ("c1", "g", &["{\"b\"", ":\"}{\"}"]), ("c2", "f", &["{}"])];
    let told = asked::<D>(&calls).await.expect("every API can carry whole arguments");
    let expected = [("f", json!({"a": [1, 2]})), ("g", json!({"b": "}{"})), ("f", json!({}))];
    let expected: Vec<_> = expected.map(|(name, value)| (name, Arguments::Parsed(value))).into();
    let told: Vec<_> = told.iter().map(|call| (call.name.as_str(), call.arguments.clone())).collect();
    assert_eq!(told, expected);
}

/// A result is matched to its call by the id: two calls with one id could not both be answered.
pub(crate) async fn calls_share_an_id<D: Dialect>() {
    for id in ["same", ""] {
        let calls: [Asked<'_>; 3] =
            [(id, "f", &["{\"a\":1}"]), (id, "g", &["{\"b\":2}"]), (id, "f", &["{\"c\":3}"])];
        let told = asked::<D>(&calls).await.expect("every API can carry whole arguments");
        let ids: HashSet<_> = told.iter().map(|call| &call.id).collect();
        assert_eq!((told.len(), ids.len()), (3, 3), "{told:?}");
        assert!(told.iter().all(|call| !call.id.is_empty()), "{told:?}");
    }
}

/// The reason to stop says tools, and the arguments end in mid-air: nothing that could run comes of it.
pub(crate) async fn arguments_that_are_cut_off<D: Dialect>() {
    for cut in ["{\"path\": \"/tmp/a", "{\"n\": 1", "{", "{\"a\": [1, 2", "[]", "null", "{} {}"] {
        let calls: [Asked<'_>; 2] = [("c0", "f", &["{\"whole\":true}"]), ("c1", "g", &[cut])];
        let Some(told) = asked::<D>(&calls).await else { return };
        assert_eq!(told[0].arguments, Arguments::Parsed(json!({"whole": true})));
        let malformed = matches!(&told[1].arguments, Arguments::Malformed { raw, .. } if raw == cut);
        assert!(malformed && told.len() == 2, "{cut} became {told:?}");
    }
}
