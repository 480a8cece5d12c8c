//! Synchronizes the schedules of the configuration file with the table. Schedules are added, changed and removed with
//! the file. State that is not in the file stays in the table: manual pauses and the next occurrence.

use std::collections::BTreeMap;

use model::UserId;
use model::schedule::ScheduleSource;
use store::executions::OwnerScope;
use store::schedules::{self, ScheduleFilter};
use store::{Error, Transaction};

use crate::{CheckedSchedule, Scheduler};

/// The pause reason of a schedule with `enabled = false` in the file. Stored in rows and compared with them.
const DISABLED_REASON: &str = "not enabled in the configuration";
/// The number of rows that are read at once.
const PAGE_SIZE: i64 = 200;

/// The result of a synchronization. The lists contain names; those of `removed` are in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncReport {
    pub added: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
    /// Names that a schedule of the API uses. It stays, and the schedule of the file is not added.
    pub name_conflicts: Vec<String>,
}

impl Scheduler {
    /// Makes the table match the schedules of the file. They belong to the local user. All nodes must have the same
    /// file. Returns the changes. Fails if the database fails.
    pub async fn sync(&self, file: Vec<CheckedSchedule>) -> store::Result<SyncReport> {
        let scheduler = self.clone();
        self.store().owner_transaction(UserId::LOCAL, async move |tx| scheduler.sync_in(tx, &file).await).await
    }

    /// Synchronizes in a transaction. Schedules of the file are matched by name, ignoring case. New ones are added for
    /// the local user, and those that are no longer in the file are removed. A name that a schedule of the API has, or
    /// that occurs twice in the file, is a conflict and not added.
    ///
    /// `enabled = false` pauses a schedule. Without it, a schedule that was paused for this reason is resumed if it has
    /// a future occurrence. Other pauses stay, except that new timing resumes a finished schedule. A schedule counts as
    /// changed if its settings or its enabled state differ. Fails if the database fails or a stored schedule is
    /// invalid.
    async fn sync_in(&self, tx: &mut Transaction, file: &[CheckedSchedule]) -> store::Result<SyncReport> {
        // Nodes that start at the same time synchronize one after another.
        schedules::lock_names(tx).await?;
        let mut report = SyncReport::default();
        let now = self.clock().now();
        let mut known = BTreeMap::new();
        let filter = ScheduleFilter { source: Some(ScheduleSource::File), ..ScheduleFilter::default() };
        let mut after = None;
        loop {
            let page = schedules::list(tx, OwnerScope::AllUsers, &filter, after.as_ref(), PAGE_SIZE, now).await?;
            known.extend(page.rows.into_iter().map(|schedule| (schedule.settings.name.to_lowercase(), schedule.id)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        for checked in file {
            let name = checked.settings.name.clone();
            let is_disabled = checked.enabled == Some(false);
            let Some(id) = known.remove(&name.to_lowercase()) else {
                let paused_reason = is_disabled.then(|| DISABLED_REASON.to_owned());
                match self.insert(tx, UserId::LOCAL, checked, ScheduleSource::File, paused_reason).await {
                    Ok(_) => report.added.push(name),
                    Err(Error::AlreadyExists(_)) => report.name_conflicts.push(name),
                    Err(error) => return Err(error),
                }
                continue;
            };
            let row = schedules::lock_row(tx, OwnerScope::AllUsers, id, now).await?;
            let before = row.schedule.clone();
            let scope = OwnerScope::User(row.owner);
            let mut schedule = self.apply(tx, row, &CheckedSchedule { enabled: None, ..checked.clone() }).await?;
            if is_disabled && schedule.enabled {
                schedule = self.pause(tx, scope, id, Some(DISABLED_REASON)).await?;
            } else if !is_disabled && schedule.paused_reason.as_deref() == Some(DISABLED_REASON) {
                schedule = match self.resume(tx, scope, id).await {
                    Err(Error::AlreadyEnded) => schedule,
                    resumed => resumed?,
                };
            }
            if schedule.settings != before.settings || schedule.enabled != before.enabled {
                report.changed.push(name);
            }
        }
        for (name, id) in known {
            schedules::remove(tx, OwnerScope::AllUsers, id).await?;
            report.removed.push(name);
        }
        Ok(report)
    }
}
