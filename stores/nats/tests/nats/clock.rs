//! A node whose clock is not the server's: what is young is not deleted.

use std::time::Duration;

use async_nats::datetime::{DateTime, from_nanos, parse_rfc3339};
use everturn_orchestrator::{Journal as _, Retention, Version};
use everturn_store_nats::{NatsJournal, Options};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::{base::write, support::Server};

const AGE: Duration = Duration::from_secs(30 * 60);

/// Starts a relay to a server, whose clock seems to be this many hours ahead.
async fn shifted(server: String, hours: i64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(server.strip_prefix("nats://").unwrap()).await.unwrap();
            let ((mut from_client, mut to_client), (from_server, mut to_server)) =
                (client.into_split(), server.into_split());
            tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
            tokio::spawn(async move {
                let mut from_server = BufReader::new(from_server);
                while let Some(frame) = frame(&mut from_server).await {
                    if to_client.write_all(&shift(frame, hours)).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}

/// Returns the next frame of the protocol: a line, with the content that it announces.
async fn frame(from: &mut (impl tokio::io::AsyncBufRead + Unpin)) -> Option<Vec<u8>> {
    let mut frame = Vec::new();
    if from.read_until(b'\n', &mut frame).await.ok()? == 0 {
        return None;
    }
    let line = String::from_utf8_lossy(&frame).into_owned();
    if line.starts_with("MSG ") || line.starts_with("HMSG ") {
        let bytes: usize = line.split_whitespace().last()?.parse().ok()?;
        let start = frame.len();
        frame.resize(start + bytes + 2, 0);
        from.read_exact(&mut frame[start..]).await.ok()?;
    }
    Some(frame)
}

/// Shifts the times in a frame: `2026-11-24T08:15:00` in its content, and nanoseconds in the subject for an acknowledgement.
/// All have the same length afterwards.
fn shift(mut frame: Vec<u8>, hours: i64) -> Vec<u8> {
    let nanos = i128::from(hours) * 3_600_000_000_000;
    for at in 1..frame.len().saturating_sub(19) {
        let time = &frame[at..at + 19];
        let is_digits = time.iter().all(u8::is_ascii_digit) && time[0] == b'1' && frame[at - 1] == b'.';
        let shifted = if is_digits {
            (str::from_utf8(time).unwrap().parse::<i128>().unwrap() + nanos).to_string()
        } else if time[4] == b'-' && time[10] == b'T' && time[13] == b':' {
            let Ok(time) = parse_rfc3339(&format!("{}Z", String::from_utf8_lossy(time))) else { continue };
            let time: DateTime = from_nanos(time.unix_timestamp_nanos() + nanos).unwrap();
            let day = format!("{:04}-{:02}-{:02}", time.year(), u8::from(time.month()), time.day());
            format!("{day}T{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second())
        } else {
            continue;
        };
        frame[at..at + 19].copy_from_slice(shifted.as_bytes());
    }
    frame
}

#[tokio::test]
async fn what_is_young_by_the_servers_clock_is_kept_whatever_a_nodes_clock_says() {
    let Some(server) = Server::start("").await else { return };
    for hours in [-1, 1] {
        let options = server.options();
        let direct = NatsJournal::connect(&options).await.unwrap();
        let mut shifts = Options::new([shifted(server.server.url(), hours).await]);
        shifts.prefix.clone_from(&options.prefix);
        shifts.settled_after = AGE;
        let journal = NatsJournal::connect(&shifts).await.unwrap();
        let context = async_nats::jetstream::new(direct.client().clone());
        // Parts of an append that is being sent.
        let names = journal.names().stream().to_lowercase();
        for part in 0..2 {
            let mut headers = async_nats::HeaderMap::new();
            headers.insert("Ev-After", "0");
            let subject = format!("{names}.b.none.large-1.{part}");
            context.publish_with_headers(subject, headers, "part".into()).await.unwrap().await.unwrap();
        }
        assert_eq!(journal.sweep(AGE).await.unwrap(), 0, "{hours} h: they are young");
        // Appends about which a writer may still be asking.
        write(&direct, &"c".into(), Version(0), 1..=100).await;
        let newest = Retention { newest_turns: Some(1), sealed_before: None };
        assert_eq!(journal.drop_events(newest).await.unwrap(), 95);
        let kept: usize = server.subjects(&direct, "c.*").await.values().sum();
        assert_eq!(kept, 100, "{hours} h: they are young");
        assert_eq!(journal.sweep(Duration::ZERO).await.unwrap(), 1);
    }
}
