//! Says in words why a schedule did, or did not, run around a time: from its decisions, and from where it stands.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::schedule::{Decision, Explanation, Kind, Schedule};
use store::Conn;
use store::executions::Whose;
use store::schedules;
use uuid::Uuid;

use crate::Scheduler;
use crate::manage::when;
use crate::when::{When, put_off};

impl Scheduler {
    /// What happened around `at`, and what comes next.
    pub async fn explain(&self, conn: &mut Conn, whose: Whose, id: Uuid, at: Timestamp) -> store::Result<Explanation> {
        let now = self.clock().now();
        let schedule = schedules::get(conn, whose, id, now).await?;
        let when = when(&schedule.settings, schedule.created_at)?;
        let due_at = when.last_within(schedule.created_at, at);
        let mut decision = None;
        let mut by_hand = None;
        let (before, behind) = schedules::around(conn, whose, id, at).await?;
        if let Some(due) = due_at {
            let (upon, _) = schedules::around(conn, whose, id, due).await?;
            decision = upon.filter(|upon| upon.kind != Kind::Run && upon.until.unwrap_or(upon.due_at) >= due);
        }
        // Between that time and the one behind it.
        let since = due_at.unwrap_or(schedule.created_at);
        let next = when.after(at).unwrap_or(Timestamp::MAX);
        for found in [before, behind].into_iter().flatten().filter(|found| found.kind == Kind::Run) {
            by_hand = by_hand.or(Some(found).filter(|found| found.due_at >= since && found.due_at < next));
        }
        let say =
            Say { schedule: &schedule, zone: TimeZone::get(&schedule.settings.time_zone).unwrap_or(TimeZone::UTC) };
        let mut sentences = vec![match (&decision, due_at) {
            _ if at < schedule.created_at => format!("It was made at {}.", say.time(schedule.created_at)),
            (Some(decision), Some(due)) => say.decided(decision, due),
            (None, Some(due)) => say.undecided(due, now),
            (_, None) => "None of its times had come by then.".to_owned(),
        }];
        if let Some(run) = &by_hand {
            sentences.push(format!("Somebody ran it by hand at {}.", say.time(run.decided_at)));
        }
        sentences.push(say.outlook(&when, now));
        Ok(Explanation { schedule_id: id, at, due_at, decision, by_hand, text: sentences.join(" ") })
    }
}

struct Say<'a> {
    schedule: &'a Schedule,
    zone: TimeZone,
}

impl Say<'_> {
    fn time(&self, time: Timestamp) -> String {
        time.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
    }

    fn decided(&self, decision: &Decision, due: Timestamp) -> String {
        let due = self.time(due);
        let reason = decision.reason.as_deref().map_or(String::new(), |reason| format!(": {reason}"));
        match decision.kind {
            Kind::Fired | Kind::Run => {
                let at = self.time(decision.decided_at);
                format!("It was due at {due} and was run at {at}{}.", reason.replacen(": ", "; it ", 1))
            }
            Kind::CaughtUp => {
                format!(
                    "It was due at {due}, when nobody was there to run it; that was made up for at {}.",
                    self.time(decision.decided_at)
                )
            }
            Kind::Skipped => format!("It was due at {due} and was left out{reason}."),
            Kind::Missed => format!("It was due at {due} and was not run{reason}."),
            Kind::Paused => format!("It was due at {due}, but it was paused{reason}."),
            Kind::Refused => format!("It was due at {due} and could not be run{reason}."),
            Kind::Queued => format!("It was due at {due} and waits for the run before it to end."),
        }
    }

    fn undecided(&self, due: Timestamp, now: Timestamp) -> String {
        let acted = put_off(self.schedule.id, due, self.schedule.settings.jitter);
        let shown = self.time(due);
        if self.schedule.paused_at.is_some_and(|paused| paused <= due) {
            return format!("It was due at {shown}, but it was paused.");
        }
        if due > now || acted > now {
            return format!("It is due at {shown} and will be run at {}.", self.time(acted));
        }
        if self.schedule.next_execution.is_some_and(|next| next <= now) {
            return format!(
                "It was due at {shown}, and nobody has acted upon that yet: no adjutant with a scheduler runs."
            );
        }
        if due < self.schedule.updated_at {
            return format!(
                "By its settings of today it was due at {shown}, but it was changed at {}; nothing is on record.",
                self.time(self.schedule.updated_at)
            );
        }
        format!("It was due at {shown}, and nothing is on record any more.")
    }

    fn outlook(&self, when: &When, now: Timestamp) -> String {
        if !self.schedule.enabled {
            let reason = self.schedule.paused_reason.as_deref().unwrap_or("for no reason that is on record");
            return match self.schedule.paused_at {
                Some(since) => format!("It is paused since {}: {reason}.", self.time(since)),
                None => format!("It is paused: {reason}."),
            };
        }
        match self.schedule.next_execution.or_else(|| when.after(now)) {
            Some(next) => format!("It will be run next at {}.", self.time(next)),
            None => "It has no more times.".to_owned(),
        }
    }
}
