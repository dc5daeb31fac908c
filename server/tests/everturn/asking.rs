//! Questions of tools, answered in the terminal. The MCP server is a shell script that speaks just enough of the protocol.
#![cfg(unix)]

use everturn_sim::{Loopback, chat};
use serde_json::{Value, json};

use crate::{
    home::Home,
    terminal::{CTRL_D, Terminal},
};

/// Asks for guests, tea and a room during the call of its tool, and returns the answer that it got.
const SERVER: &str = r#"
while read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"hotel","version":"1"}}}' ;;
    *'"method":"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"book","description":"Books","inputSchema":{"type":"object"}}]}}' ;;
    *'"method":"tools/call"'*)
      call=$id
      echo '{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"message":"Which room?","requestedSchema":{"type":"object","properties":{"guests":{"type":"integer","title":"Guests","minimum":1,"maximum":4},"tea":{"type":"boolean","default":true},"room":{"type":"string","enum":["sea","hill"]}},"required":["guests"]}}}' ;;
    *'"id":900'*)
      text=booked
      for part in '"guests":2' '"tea":true' '"room":"hill"'; do
        case $line in *$part*) ;; *) text='something else' ;; esac
      done
      case $line in *'"decline"'*) text=declined ;; esac
      echo '{"jsonrpc":"2.0","id":'$call',"result":{"content":[{"type":"text","text":"'$text'"}]}}' ;;
    *'"method":"notifications'*) ;;
    *) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"not found"}}' ;;
  esac
done
"#;

fn home(provider: &Loopback) -> Home {
    let home = Home::with(&format!(
        "[tools.policy]\n\"*\" = \"allow\"\n[[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\nmodels = [\"m\"]\n\
         [[mcp]]\nname = \"hotel\"\ncommand = \"sh\"\nargs = [\"server.sh\"]\ncwd = \"FOLDER\"\n",
        provider.base_url()
    ));
    let file = home.path().join("everturn/config.toml");
    let config =
        std::fs::read_to_string(&file).unwrap().replace("FOLDER", &home.path().display().to_string());
    std::fs::write(&file, config).unwrap();
    std::fs::write(home.path().join("server.sh"), SERVER).unwrap();
    home
}

/// Returns the last tool result that the model got.
fn told(provider: &Loopback) -> Value {
    let request: Value = provider.requests().last().unwrap().json().unwrap();
    let messages = request["messages"].as_array().unwrap().clone();
    messages.iter().rev().find(|message| message["role"] == "tool").unwrap()["content"].clone()
}

#[tokio::test]
#[cfg_attr(not(feature = "mcp"), ignore = "needs the feature `mcp`")]
async fn a_form_is_asked_for_field_by_field_and_asked_again_if_it_does_not_fit() {
    let call = || chat::tool("call", "hotel__book", ["{}"]).reply();
    let said = |text: &str| chat::text([text]).reply();
    let provider = Loopback::start([call(), said("Done."), call(), said("As you wish.")]).await;
    let mut terminal = Terminal::new(&home(&provider), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("/decline", "No tool is asking a question.").await;
    terminal.until_ends("\n>").await;
    terminal.enter("book a room", "hotel asks you").await;
    terminal.until("1/3 Guests (a whole number, 1 to 4)").await;
    terminal.enter("many", "Guests must be a whole number.").await;
    terminal.enter("9", "2/3 tea (y or n; /skip takes true)").await;
    terminal.enter("/skip", "3/3 room").await;
    terminal.press("/skip\r").await;
    // Only the server knows its range.
    terminal.until("Guests must be at most 4").await;
    terminal.enter("2", "(/decline declines)").await;
    terminal.press("y\r").await;
    terminal.enter("hill", "Answered hotel.").await;
    terminal.until("Done.\n\n>").await;
    assert_eq!(told(&provider), json!("booked"));
    terminal.press("again\r").await;
    terminal.until_ends("(/decline declines)").await;
    terminal.enter("/decline", "As you wish.\n\n>").await;
    assert_eq!(told(&provider), json!("declined"));
    terminal.press(CTRL_D).await;
    assert_eq!(terminal.end().await.code(), Some(0));
}

#[tokio::test]
#[cfg_attr(not(feature = "mcp"), ignore = "needs the feature `mcp`")]
async fn nobody_is_asked_in_a_pipe() {
    let call = chat::tool("call", "hotel__book", ["{}"]).reply();
    let provider = Loopback::start([call, chat::text(["Done."]).reply()]).await;
    let output = home(&provider).run(&["chat", "book a room"]).await;
    assert!(output.status.success(), "{}", crate::home::stderr(&output));
    assert_eq!(told(&provider), json!("something else"), "it was cancelled");
}
