//! The schedules of the configuration file, brought into the table: they come, change and go with the file. What is not in
//! the file stays theirs: whether somebody has paused them, and when they are due.

use std::collections::BTreeMap;

use model::UserId;
use model::schedule::Source;
use store::executions::Whose;
use store::schedules::{self, Filter};
use store::{Error, Transaction};

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
        self.store().transaction(async move |tx| scheduler.sync_in(tx, &file).await).await
    }

    async fn sync_in(&self, tx: &mut Transaction, file: &[Checked]) -> store::Result<Synced> {
        // Nodes that start together do this one after the other.
        schedules::alone(tx).await?;
        let mut synced = Synced::default();
        let now = self.clock().now();
        let mut known = BTreeMap::new();
        let filter = Filter { source: Some(Source::File), ..Filter::default() };
        let mut after = None;
        loop {
            let page = schedules::list(tx, Whose::Everyones, &filter, after.as_ref(), PAGE, now).await?;
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
                match self.make(tx, UserId::LOCAL, checked, Source::File, paused).await {
                    Ok(_) => synced.added.push(name),
                    Err(Error::Taken(_)) => synced.taken.push(name),
                    Err(error) => return Err(error),
                }
                continue;
            };
            let kept = schedules::lock(tx, Whose::Everyones, id, now).await?;
            let before = kept.schedule.clone();
            let whose = Whose::Users(kept.owner);
            let mut schedule = self.rewrite(tx, kept, &Checked { enabled: None, ..checked.clone() }).await?;
            if off && schedule.enabled {
                schedule = self.pause(tx, whose, id, Some(SWITCHED_OFF)).await?;
            } else if !off && schedule.paused_reason.as_deref() == Some(SWITCHED_OFF) {
                schedule = match self.resume(tx, whose, id).await {
                    Err(Error::Ended) => schedule,
                    resumed => resumed?,
                };
            }
            if schedule.settings != before.settings || schedule.enabled != before.enabled {
                synced.changed.push(name);
            }
        }
        for (name, id) in known {
            schedules::remove(tx, Whose::Everyones, id).await?;
            synced.removed.push(name);
        }
        Ok(synced)
    }
}
