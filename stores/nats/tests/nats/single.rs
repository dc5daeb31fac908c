//! One server that is killed, and answers that are lost: what rivals are told could be told one after another, readings too.

use std::{sync::Arc, time::Duration};

use everturn_sim::{linear::Plan, relay::Mode};
use everturn_store_nats::NatsJournal;
use tokio::time::sleep;

use crate::{relay::relay, rivals::Rivals, support::Server};

const CONVERSATIONS: usize = 6;

/// How often an answer is lost and the server is killed, and the number of successful appends before each.
const FAULTS: usize = 3;
const BETWEEN: usize = 100;

/// The place of the rival whose answers are lost, and for how long at a time: longer than it waits for one.
const BEHIND: usize = 1;
const DROPPING: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rivals_are_told_what_could_be_told_one_after_another() {
    let Some(mut server) = Server::start("").await else { return };
    let direct = server.options();
    let (relay, url) = relay([server.server.url()]).await;
    let mut behind = direct.clone();
    behind.servers = vec![url];
    // Often given up before it is known.
    behind.answer_within = Duration::from_millis(300);
    behind.give_up_after = Duration::from_millis(500);
    let mut rivals = Rivals::new(CONVERSATIONS, Plan { removes: true, lists: true, may_lag: false });
    for options in [&direct, &behind] {
        rivals.join(Arc::new(NatsJournal::connect(options).await.unwrap()));
    }
    for _ in 0..FAULTS {
        rivals.appended(BETWEEN).await;
        let lost = rivals.unknown();
        // Dropped again and again: what is not connected, or only reads, when that begins appends nothing meanwhile.
        while rivals.unknown() == lost {
            rivals.appended_at(CONVERSATIONS + 1, BEHIND).await;
            relay.mode.send_replace(Mode::DropAnswers);
            sleep(DROPPING).await;
            relay.mode.send_replace(Mode::Relay);
        }
        rivals.appended(BETWEEN).await;
        server.server.restart();
    }
    rivals.appended(BETWEEN).await;
    rivals.audit(Arc::new(NatsJournal::connect(&direct).await.unwrap())).await;
}
