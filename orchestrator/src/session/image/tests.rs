use everturn_wire::{ErrorReport, Image};

use super::*;

const MODEL: &str = "key/model";

fn stored(seq: u64, role: Role, chunk: Chunk) -> Arc<StoredChunk> {
    Arc::new(StoredChunk { seq, role, chunk: Arc::new(chunk), supersedes: None })
}

fn shown(seq: u64) -> Arc<StoredChunk> {
    stored(seq, Role::User, Chunk::Image { url: "https://x.test/a.png".into(), mime_type: None })
}

fn looked(seq: u64) -> Arc<StoredChunk> {
    let image = Image { url: "data:image/png;base64,AA".into(), mime_type: None };
    let chunk = Chunk::ToolResult {
        tool_call_id: "a".into(),
        tool_name: "look".into(),
        content: "a screenshot".into(),
        is_error: false,
        step_id: None,
        images: vec![image],
        decisions: Vec::new(),
        questions: Vec::new(),
    };
    stored(seq, Role::Tool, chunk)
}

fn said(seq: u64, role: Role) -> Arc<StoredChunk> {
    stored(seq, role, Chunk::Text { text: "words".into() })
}

fn rejection(seq: u64, model: Option<&str>) -> Arc<StoredChunk> {
    let rejected_image = Some(RejectedImage { model: model.map(str::to_owned) });
    stored(seq, Role::Assistant, Chunk::Error(ErrorReport { rejected_image, ..ErrorReport::new("HTTP 400") }))
}

fn failed(seq: u64) -> Arc<StoredChunk> {
    stored(seq, Role::Assistant, Chunk::error("HTTP 529"))
}

fn blamed(chunks: &[Arc<StoredChunk>], model: &str) -> Vec<u64> {
    rejected(chunks, model).into_iter().collect()
}

#[test]
fn to_blame_are_the_images_since_the_last_answer() {
    let mut chunks =
        vec![shown(1), said(2, Role::User), said(3, Role::Assistant), shown(4), failed(5), shown(6)];
    assert_eq!(blamed(&chunks, MODEL), [0; 0], "none was rejected");
    chunks.push(rejection(7, Some(MODEL)));
    assert_eq!(blamed(&chunks, MODEL), [4, 6]);
    let of_tool = [shown(1), said(2, Role::Assistant), looked(3), looked(4), rejection(5, Some(MODEL))];
    assert_eq!(blamed(&of_tool, MODEL), [3, 4]);
}

#[test]
fn if_none_is_new_all_are_to_blame() {
    let mut chunks = vec![shown(1), said(2, Role::Assistant), shown(3), rejection(4, Some(MODEL))];
    chunks.push(rejection(5, Some(MODEL)));
    assert_eq!(blamed(&chunks, MODEL), [1, 3], "as for a model that takes only text");
}

#[test]
fn another_model_still_gets_the_image() {
    let chunks = [shown(1), rejection(2, Some("key/blind"))];
    assert_eq!(blamed(&chunks, MODEL), [0; 0]);
    assert_eq!(blamed(&chunks, "key/blind"), [1]);
    assert_eq!(blamed(&[shown(1), rejection(2, None)], MODEL), [1], "if it is unknown which one rejected it");
}

#[test]
fn a_rejection_counts_after_its_turn_was_superseded() {
    let again = StoredChunk { supersedes: Some(3), ..(*said(4, Role::Assistant)).clone() };
    let chunks = [shown(1), said(2, Role::User), rejection(3, Some(MODEL)), Arc::new(again)];
    assert_eq!(blamed(&chunks, MODEL), [1], "when the turn is tried again");
    let edited = StoredChunk { supersedes: Some(1), ..(*shown(4)).clone() };
    let mut chunks = vec![shown(1), said(2, Role::User), rejection(3, Some(MODEL)), Arc::new(edited)];
    assert_eq!(blamed(&chunks, MODEL), [1], "not the one that replaces it");
    chunks.push(rejection(5, Some(MODEL)));
    assert_eq!(blamed(&chunks, MODEL), [1, 4]);
}

#[test]
fn a_note_takes_its_place() {
    assert_eq!(noted(&shown(1).chunk), Chunk::Text { text: NOTE.to_owned() });
    let Chunk::ToolResult { content, images, .. } = noted(&looked(1).chunk) else { panic!() };
    assert_eq!((content, images), (format!("a screenshot\n{NOTE}"), Vec::new()));
    assert_eq!(noted(&said(1, Role::User).chunk), *said(1, Role::User).chunk);
}
