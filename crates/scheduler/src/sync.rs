//! The schedules of the configuration file, brought into the table: they come, change and go with the file. What is not in
//! the file stays theirs: whether somebody has paused them, and when they are due.

use std::collections::BTreeMap;

use model::UserId;
use model::schedule::Source;
use store::Error;
use store::executions::Whose;
use store::schedules::{self, Filter};

use crate::{Checked, Scheduler};

/// Why a schedule is paused that the file says is not enabled.
const SWITCHED_OFF: &str = "not enabled in the configuration";
/// Rows read at once.
const PAGE: i64 = 200;

/// What came of it, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    pub added: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
    /// Names that a schedule made over the API has: that one stays, the one of the file is not there.
    pub taken: Vec<String>,
}

impl Scheduler {
    /// Makes the table say what the file says. They belong to the local user. All nodes must have the same ones.
    pub async fn sync(&self, file: Vec<Checked>) -> store::Result<Synced> {
        let scheduler = self.clone();
        let synced =
            self.store().write(move |conn| Box::pin(async move { scheduler.sync_in(conn, &file).await })).await?;
        self.wake();
        Ok(synced)
    }

    async fn sync_in(&self, conn: &mut store::Conn, file: &[Checked]) -> store::Result<Synced> {
        // Nodes that start together do this one after the other.
        schedules::alone(conn).await?;
        let (mut synced, now) = (Synced::default(), self.clock().now());
        let mut known = BTreeMap::new();
        let (filter, mut after) = (Filter { source: Some(Source::File), ..Filter::default() }, None);
        loop {
            let page = schedules::list(conn, Whose::Everyones, &filter, after.as_ref(), PAGE, now).await?;
            known.extend(page.rows.into_iter().map(|schedule| (schedule.settings.name.to_lowercase(), schedule.id)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        for checked in file {
            let name = checked.settings.name.clone();
            let off = checked.enabled == Some(false);
            let Some(id) = known.remove(&name.to_lowercase()) else {
                let paused = off.then(|| SWITCHED_OFF.to_owned());
                match self.make(conn, UserId::LOCAL, checked, Source::File, paused).await {
                    Ok(_) => synced.added.push(name),
                    Err(Error::Taken(_)) => synced.taken.push(name),
                    Err(error) => return Err(error),
                }
                continue;
            };
            let kept = schedules::lock(conn, Whose::Everyones, id, now).await?;
            let (before, whose) = (kept.schedule.clone(), Whose::Users(kept.owner));
            let mut schedule = self.rewrite(conn, kept, &Checked { enabled: None, ..checked.clone() }).await?;
            if off && schedule.enabled {
                schedule = self.pause(conn, whose, id, Some(SWITCHED_OFF)).await?;
            } else if !off && schedule.paused_reason.as_deref() == Some(SWITCHED_OFF) {
                schedule = match self.resume(conn, whose, id).await {
                    Err(Error::Ended) => schedule,
                    resumed => resumed?,
                };
            }
            if schedule.settings != before.settings || schedule.enabled != before.enabled {
                synced.changed.push(name);
            }
        }
        for (name, id) in known {
            schedules::remove(conn, Whose::Everyones, id).await?;
            synced.removed.push(name);
        }
        Ok(synced)
    }
}
