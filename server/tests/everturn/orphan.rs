//! MCP programs whose server is killed.

use std::{fs, process::Command};

use tokio::{task::yield_now, time::timeout};

use crate::home::{DEADLINE, Home};

/// Ignores the end of its input and requests to end, and has a child. Writes the ids of both.
const PROGRAM: &str = "trap '' TERM HUP; sleep 60 & echo $$ $! > ids.part; mv ids.part ids; sleep 60";

/// Whether a process runs; one that has ended may not have been waited for.
fn is_alive(id: &str) -> bool {
    let status = Command::new("ps").args(["-o", "stat=", "-p", id]).output().unwrap();
    let status = String::from_utf8(status.stdout).unwrap();
    !status.trim().is_empty() && !status.trim().starts_with('Z')
}

#[tokio::test]
#[cfg_attr(not(feature = "mcp"), ignore = "needs the feature `mcp`")]
async fn a_program_and_its_child_end_with_a_server_that_is_killed() {
    let home = Home::with(&format!(
        "[[mcp]]\nname = \"stubborn\"\ncommand = \"sh\"\nargs = [\"-c\", \"\"\"{PROGRAM}\"\"\"]\ncwd = \"HOME\"\n"
    ));
    let config = home.path().join("everturn/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("\"HOME\"", &format!("{:?}", home.path().display().to_string())))
        .unwrap();
    let mut server = home.serve().await;
    let ids = fs::read_to_string(home.place("ids")).unwrap();
    let are_alive = || ids.split_whitespace().filter(|id| is_alive(id)).count();
    assert_eq!(are_alive(), 2, "{ids}");
    // A service manager asks all processes of a service to end, and kills those that do not in time.
    let id = server.child.id().unwrap().to_string();
    let asked = Command::new("pkill").args(["-TERM", "-P", &id, "everturn"]).status().unwrap();
    assert!(asked.success(), "the watchdog is there");
    server.child.kill().await.unwrap();
    let gone = async {
        while are_alive() > 0 {
            yield_now().await;
        }
    };
    timeout(DEADLINE, gone).await.expect("they end within seconds");
}
