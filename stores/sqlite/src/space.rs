//! Gives the file's unused space back to the system.

use everturn_ports::JournalError;
use rusqlite::Connection;

use crate::SqliteJournal;

/// Space is given back once it is a quarter of the file and this many bytes. Until then, appends use it.
const WORTH: u64 = 16 << 20;

/// Number of pages given back per transaction, so that appends do not wait long.
const PAGES: u32 = 1024;

/// The space that a file takes.
#[derive(Clone, Copy, Debug)]
struct Room {
    page_bytes: u64,
    pages: u64,
    free_pages: u64,
    /// Whether SQLite can move pages out of the end of the file.
    is_movable: bool,
}

impl SqliteJournal {
    /// Gives unused space back. Returns the number of bytes by which the file is shorter.
    ///
    /// Pages can only be moved in files that say where each page is used, which costs a tenth more writing with each
    /// append. So a file becomes one when it first has space to give back: it is written anew, and appends wait for that.
    /// From then on, it shrinks in small steps.
    pub(crate) async fn shrink(&self) -> Result<u64, JournalError> {
        let before = self.alone(|connection| room(connection)).await?;
        if !before.is_worth_giving() {
            return Ok(0);
        }
        if before.is_movable {
            while self.alone(|connection| step(connection)).await? {}
        } else {
            self.alone(|connection| connection.execute_batch("PRAGMA auto_vacuum = incremental; VACUUM"))
                .await?;
        }
        let after = self.alone(|connection| room(connection)).await?;
        // What was written so far is only in the log, and the file is still as long as before.
        self.alone(|connection| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
            .await?;
        Ok(before.pages.saturating_sub(after.pages) * before.page_bytes)
    }
}

impl Room {
    fn is_worth_giving(&self) -> bool {
        self.free_pages >= self.pages / 4 && self.free_pages * self.page_bytes >= WORTH
    }
}

fn room(connection: &Connection) -> rusqlite::Result<Room> {
    let pragma = |name: &str| -> rusqlite::Result<u64> {
        let number: i64 =
            connection.query_row(&format!("SELECT * FROM pragma_{name}"), [], |row| row.get(0))?;
        Ok(number.unsigned_abs())
    };
    Ok(Room {
        page_bytes: pragma("page_size")?,
        pages: pragma("page_count")?,
        free_pages: pragma("freelist_count")?,
        is_movable: pragma("auto_vacuum")? != 0,
    })
}

/// Gives some pages back. Returns whether there are more.
fn step(connection: &Connection) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(room(connection)?.free_pages > 0)
}
