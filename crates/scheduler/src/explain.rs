//! Explains why a schedule ran, or did not run, around a given time. The text is based on the decisions and on the
//! current state of the schedule.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::schedule::{Decision, DecisionKind, Schedule, ScheduleExplanation};
use model::stop_state::StopState;
use store::Conn;
use store::executions::OwnerScope;
use store::schedules;
use uuid::Uuid;

use crate::Scheduler;
use crate::manage::rule_of;
use crate::occurrences::{OccurrenceRule, apply_jitter};

impl Scheduler {
    /// Explains the last occurrence at or before `at`, a manual run, and the next run. `due_at` is `None` if no
    /// occurrence lies between the creation of the schedule and `at`. `decision` is `None` if none is stored for it.
    /// `by_hand` is a manual run between this occurrence and the first one after `at`. It is found only if it is the
    /// last decision up to `at` or the first one after it. If `at` is before the creation, the text gives the time of
    /// the creation instead of an occurrence. Fails with [`store::Error::NotFound`] if the schedule does not exist in
    /// the scope, and with [`store::Error::Corrupt`] if its stored settings are invalid.
    pub async fn explain(
        &self,
        conn: &mut Conn,
        scope: OwnerScope,
        id: Uuid,
        at: Timestamp,
    ) -> store::Result<ScheduleExplanation> {
        let now = self.clock().now();
        let schedule = schedules::get(conn, scope, id, now).await?;
        let rule = rule_of(&schedule.settings, schedule.created_at)?;
        let due_at = rule.last_within(schedule.created_at, at);
        let mut decision = None;
        let mut by_hand = None;
        let (before, after) = schedules::decisions_around(conn, scope, id, at).await?;
        if let Some(due) = due_at {
            let (at_due, _) = schedules::decisions_around(conn, scope, id, due).await?;
            let covers_due = |found: &Decision| {
                !matches!(found.kind, DecisionKind::Run | DecisionKind::Recomputed)
                    && found.until.unwrap_or(found.due_at) >= due
            };
            decision = at_due.filter(covers_due);
        }
        // A manual run counts if it was made between this occurrence and the next one.
        let since = due_at.unwrap_or(schedule.created_at);
        let next = rule.next_after(at).unwrap_or(Timestamp::MAX);
        let mut recomputed = None;
        let is_near = |found: &Decision| found.due_at >= since && found.due_at < next;
        for found in [before, after].into_iter().flatten().filter(is_near) {
            match found.kind {
                DecisionKind::Run => by_hand = by_hand.or(Some(found)),
                DecisionKind::Recomputed => recomputed = recomputed.or(Some(found)),
                _ => {}
            }
        }
        let zone = TimeZone::get(&schedule.settings.time_zone).unwrap_or(TimeZone::UTC);
        let stop = store::stop_state::current(conn).await?;
        let writer = ExplanationWriter { schedule: &schedule, zone, stop };
        let mut sentences = vec![match (&decision, due_at) {
            _ if at < schedule.created_at => {
                format!("The schedule was created at {}.", writer.time(schedule.created_at))
            }
            (Some(decision), Some(due)) => writer.decided(decision, due),
            (None, Some(due)) => writer.undecided(due, now),
            (_, None) => "It had no occurrence before that time.".to_owned(),
        }];
        if let Some(run) = &by_hand {
            sentences.push(format!("It was run manually at {}.", writer.time(run.decided_at)));
        }
        if let Some(found) = recomputed {
            let reason = found.reason.unwrap_or_default();
            sentences.push(format!("It was computed again at {}: {reason}.", writer.time(found.decided_at)));
        }
        sentences.push(writer.outlook(&rule, now));
        Ok(ScheduleExplanation { schedule_id: id, at, due_at, decision, by_hand, text: sentences.join(" ") })
    }
}

/// Writes the sentences of an explanation. Times are in the time zone of the schedule.
struct ExplanationWriter<'a> {
    schedule: &'a Schedule,
    zone: TimeZone,
    /// Set while everything is stopped.
    stop: Option<StopState>,
}

impl ExplanationWriter<'_> {
    /// Formats a time in the time zone of the schedule, to the second.
    fn time(&self, time: Timestamp) -> String {
        time.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
    }

    /// Returns the sentence about an occurrence with a decision, one wording for each kind. `Run` reads like `Fired`.
    /// The reason is included, except for `Queued`. `due` may be later than the time of the decision if
    /// it covers a series.
    fn decided(&self, decision: &Decision, due: Timestamp) -> String {
        let due = self.time(due);
        let reason = decision.reason.as_deref().map_or(String::new(), |reason| format!(": {reason}"));
        match decision.kind {
            DecisionKind::Fired | DecisionKind::Run => {
                let at = self.time(decision.decided_at);
                format!("It was due at {due} and ran at {at}{}.", reason.replacen(": ", "; it ", 1))
            }
            DecisionKind::CaughtUp => {
                let cause = decision.reason.as_deref().unwrap_or("no node was running");
                let at = self.time(decision.decided_at);
                format!("It was due at {due}, but {cause}. The missed run was started at {at}.")
            }
            DecisionKind::Skipped => format!("It was due at {due} and was skipped{reason}."),
            DecisionKind::Missed => format!("It was due at {due} and was missed{reason}."),
            DecisionKind::Paused => format!("It was due at {due}, but the schedule was paused{reason}."),
            DecisionKind::Refused => format!("It was due at {due} but could not start{reason}."),
            DecisionKind::Recomputed => format!("The next run was computed again at {due}{reason}."),
            DecisionKind::Queued => format!("It was due at {due} and is waiting for the previous run to end."),
        }
    }

    /// Returns the sentence about an occurrence without a decision. Distinguishes, in this order: the schedule was
    /// paused at or before `due`; the occurrence is not due yet or delayed by jitter; the next run is overdue, so
    /// everything is stopped or no scheduler is running; it is before the last change of the schedule; the decision is no longer stored.
    fn undecided(&self, due: Timestamp, now: Timestamp) -> String {
        let runs_at = apply_jitter(self.schedule.id, due, self.schedule.settings.jitter);
        let shown = self.time(due);
        if self.schedule.paused_at.is_some_and(|paused| paused <= due) {
            return format!("It was due at {shown}, but the schedule was paused.");
        }
        if due > now || runs_at > now {
            return format!("It is due at {shown} and will run at {}.", self.time(runs_at));
        }
        if self.schedule.next_execution.is_some_and(|next| next <= now) {
            let cause = match &self.stop {
                Some(stop) => StopState::describe(stop.reason.as_deref()),
                None => "no node with a scheduler is running".to_owned(),
            };
            return format!("It was due at {shown} but has not been processed: {cause}.");
        }
        if due < self.schedule.updated_at {
            return format!(
                "By its current settings it was due at {shown}, but it was changed at {}. No decision is recorded.",
                self.time(self.schedule.updated_at)
            );
        }
        format!("It was due at {shown}. The decision is no longer stored.")
    }

    /// Returns the sentence about the pause with its time and reason, if the schedule is paused. Otherwise gives the
    /// time of the next run: the stored one, or else the next occurrence after `now`. Without one, no occurrence is
    /// left.
    fn outlook(&self, rule: &OccurrenceRule, now: Timestamp) -> String {
        if !self.schedule.enabled {
            let reason = self.schedule.paused_reason.as_deref().unwrap_or("no reason is recorded");
            return match self.schedule.paused_at {
                Some(since) => format!("It has been paused since {}: {reason}.", self.time(since)),
                None => format!("It is paused: {reason}."),
            };
        }
        match self.schedule.next_execution.or_else(|| rule.next_after(now)) {
            Some(next) => format!("The next run is at {}.", self.time(next)),
            None => "It has no future occurrences.".to_owned(),
        }
    }
}
