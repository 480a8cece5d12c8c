//! Promises of reminders over a simulated week: they ring at their times, as often as promised, and stop when told. The
//! user is in Berlin, where the clocks go forward on Sunday, 29 March 2026.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use model::User;
use model::reminder::{DEFAULT_TIME, Reminder, ReminderDraft, ReminderPatch};
use model::task::{ChangedTask, Task, TaskChange, TaskDraft, TaskLimits, TaskPatch};
use store::undo::UndoStep;
use store::{due, recurring, reminders, tasks, undo};
use uuid::Uuid;

use crate::{Bench, until};

/// A bench whose user is in Berlin. It is Thursday, 26 March 2026, 12:00.
struct Week {
    bench: Bench,
    user: User,
}

/// Runs one change of Alice as an undo step.
macro_rules! change {
    ($week:expr, $tx:ident, $step:ident => $work:expr) => {{
        let owner = $week.bench.alice;
        let work = $week.bench.store.owner_transaction(owner, async move |$tx| {
            let mut $step = UndoStep::begin($tx, owner).await?;
            let $step = &mut $step;
            $work.await
        });
        work.await
    }};
}

impl Week {
    async fn start() -> Self {
        let mut bench = Bench::sqlite().await;
        bench.clock = model::Clock::manual(local("2026-03-26T12:00"));
        bench.notifier = notify::Notifier::new(bench.store.clone(), bench.clock.clone());
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        bench.notifier.reload(notify::NotifySettings {
            notify_due: true,
            time_zone: Some(zone.clone()),
            ..notify::NotifySettings::default()
        });
        bench.run();
        let user = User { id: bench.alice, scopes: Vec::new(), time_zone: zone };
        Self { bench, user }
    }

    async fn add(&self, draft: TaskDraft) -> (Task, Option<Reminder>) {
        let checked = draft.check_with_reminder(TaskLimits::default(), &self.bench.clock, &self.user, DEFAULT_TIME);
        let (task, reminder) = checked.unwrap();
        let added = (task.clone(), reminder.clone());
        let zone = self.user.time_zone.clone();
        change!(self, tx, step => tasks::create_with_reminder(tx, step, &task, reminder.as_ref(), &zone)).unwrap();
        added
    }

    async fn task(&self, title: &str, due: &str, rule: &str) -> Task {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let draft = TaskDraft {
            title: title.to_owned(),
            due_date: given(due),
            recurrence: given(rule),
            ..TaskDraft::default()
        };
        self.add(draft).await.0
    }

    /// Adds a reminder for a new task.
    async fn remind(&self, title: &str, draft: ReminderDraft) -> Uuid {
        let task = self.task(title, "", "").await;
        self.remind_of(&task, draft).await
    }

    async fn remind_of(&self, task: &Task, draft: ReminderDraft) -> Uuid {
        let draft = ReminderDraft { task_id: task.id.to_string(), ..draft };
        let reminder = draft.check(&self.bench.clock, &self.user, DEFAULT_TIME).unwrap();
        let now = self.bench.clock.now();
        change!(self, tx, step => reminders::create(tx, step, &reminder, now)).unwrap().0.id
    }

    async fn change_task(&self, id: Uuid, change: TaskChange) -> ChangedTask {
        let clock = self.bench.clock.clone();
        let zone = self.user.time_zone.clone();
        change!(self, tx, step => recurring::change(tx, step, id, &change, &clock, &zone)).unwrap()
    }

    async fn patch_task(&self, id: Uuid, patch: TaskPatch) -> ChangedTask {
        let change = patch.check(TaskLimits::default(), &self.user).unwrap();
        self.change_task(id, change).await
    }

    async fn undo(&self) {
        let owner = self.bench.alice;
        self.bench.store.owner_transaction(owner, async move |tx| undo::undo(tx, owner).await).await.unwrap();
    }

    /// Advances the clock from one due time to the next. Returns the titles and the local times of all notifications
    /// until then.
    async fn rings_until(&self, end: &str) -> Vec<String> {
        let end = local(end);
        let seen = self.bench.notes().await.len();
        loop {
            let next = self.next_due().await;
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.bench.clock.set(next.max(self.bench.clock.now()));
            self.bench.notifier.wake();
            until("everything due has fired", async || self.next_due().await.is_none_or(|due| due > next)).await;
        }
        self.bench.clock.set(end);
        let notes = self.bench.notes().await.split_off(seen);
        let line = |note: &model::notification::Notification| {
            let title = note.title.split_once(": ").unwrap().1;
            let at = note.created_at.to_zoned(self.user.time_zone.clone());
            format!("{title} {}", at.strftime("%a %H:%M"))
        };
        notes.iter().map(line).collect()
    }

    async fn next_due(&self) -> Option<Timestamp> {
        let mut reader = self.bench.store.reader().await.unwrap();
        let times = [reminders::next_due_at(&mut reader).await.unwrap(), due::next_due_at(&mut reader).await.unwrap()];
        times.into_iter().flatten().min()
    }
}

fn local(time: &str) -> Timestamp {
    let time: DateTime = time.parse().unwrap();
    time.to_zoned(TimeZone::get("Europe/Berlin").unwrap()).unwrap().timestamp()
}

fn rule(text: &str) -> ReminderDraft {
    ReminderDraft { recurrence: Some(text.to_owned()), ..ReminderDraft::default() }
}

fn at(text: &str) -> ReminderDraft {
    ReminderDraft { remind_at: Some(text.to_owned()), ..ReminderDraft::default() }
}

fn before(minutes: i64) -> ReminderDraft {
    ReminderDraft { before_minutes: Some(minutes), ..ReminderDraft::default() }
}

fn due_date(text: &str) -> TaskPatch {
    TaskPatch { due_date: Some(Some(text.to_owned()).filter(|text| !text.is_empty())), ..TaskPatch::default() }
}

#[tokio::test]
async fn each_repetition_rings_at_its_local_time() {
    // TRUST-2, TASK-4
    let week = Week::start().await;
    week.remind("once", at("2026-03-30T18:15")).await;
    week.remind("day", at("2026-03-31")).await;
    week.remind("pills", rule("FREQ=DAILY;BYHOUR=8;BYMINUTE=0")).await;
    week.remind("work", rule("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=8;BYMINUTE=30")).await;
    week.remind("counted", rule("FREQ=DAILY;BYHOUR=20;BYMINUTE=0;COUNT=2")).await;
    week.remind(
        "ends",
        ReminderDraft { remind_at: Some("2026-03-27T21:00".into()), ..rule("FREQ=DAILY;UNTIL=20260328") },
    )
    .await;
    let nag = ReminderDraft { repeat_interval_minutes: Some(30), repeat_count: Some(3), ..at("2026-03-27T10:00") };
    week.remind("nag", nag).await;
    assert_eq!(
        week.rings_until("2026-04-02T12:00").await,
        [
            "counted Thu 20:00",
            "pills Fri 08:00",
            "work Fri 08:30",
            "nag Fri 10:00",
            "nag Fri 10:30",
            "nag Fri 11:00",
            "counted Fri 20:00",
            "ends Fri 21:00",
            "pills Sat 08:00",
            "ends Sat 21:00",
            "pills Sun 08:00",
            "pills Mon 08:00",
            "work Mon 08:30",
            "once Mon 18:15",
            "pills Tue 08:00",
            "work Tue 08:30",
            "day Tue 09:00",
            "pills Wed 08:00",
            "work Wed 08:30",
            "pills Thu 08:00",
            "work Thu 08:30",
        ]
    );
}

#[tokio::test]
async fn an_hourly_reminder_rings_every_hour() {
    // TRUST-2: also while the earlier notifications are unread
    let week = Week::start().await;
    week.remind("drink", rule("FREQ=HOURLY")).await;
    let rings = week.rings_until("2026-04-02T12:00").await;
    assert_eq!(rings.len(), 7 * 24 - 1, "an hour less because of the clock change");
    assert_eq!(rings[0], "drink Thu 13:00");
    let night = rings.iter().filter(|ring| ring.starts_with("drink Sun 0")).take(4).collect::<Vec<_>>();
    assert_eq!(night, ["drink Sun 00:00", "drink Sun 01:00", "drink Sun 03:00", "drink Sun 04:00"]);
}

#[tokio::test]
async fn a_repeating_task_rings_at_each_occurrence_while_it_is_open() {
    // TRUST-2
    let week = Week::start().await;
    let sip = week.task("sip", "2026-03-26T18:00", "FREQ=DAILY").await;
    week.task("once", "2026-03-26T18:30", "").await;
    assert_eq!(
        week.rings_until("2026-03-29T12:00").await,
        ["sip Thu 18:00", "once Thu 18:30", "sip Fri 18:00", "sip Sat 18:00"]
    );
    let next = week.change_task(sip.id, TaskChange::complete()).await.next_task.unwrap().unwrap();
    assert_eq!(next.due_date.unwrap().timestamp(), Some(local("2026-03-29T18:00")));
    assert_eq!(week.rings_until("2026-03-30T23:00").await, ["sip Sun 18:00", "sip Mon 18:00"]);
    week.patch_task(next.id, TaskPatch { recurrence: Some(None), ..TaskPatch::default() }).await;
    assert_eq!(week.rings_until("2026-04-02T12:00").await, [""; 0], "it does not repeat any more");
}

#[tokio::test]
async fn a_count_of_a_repeating_task_ends_its_rings() {
    // TRUST-2
    let week = Week::start().await;
    week.task("sip", "2026-03-26T13:00", "FREQ=HOURLY;COUNT=3").await;
    assert_eq!(week.rings_until("2026-04-02T12:00").await, ["sip Thu 13:00", "sip Thu 14:00", "sip Thu 15:00"]);
}

#[tokio::test]
async fn missed_occurrences_ring_once() {
    // TRUST-2: no flood after a pause
    let week = Week::start().await;
    week.task("due", "2026-03-26T18:00", "FREQ=MINUTELY").await;
    week.remind("reminder", rule("FREQ=MINUTELY")).await;
    week.bench.clock.set(local("2026-03-28T09:00"));
    let mut rings = week.rings_until("2026-03-28T09:01").await;
    rings.sort();
    assert_eq!(rings, ["due Sat 09:00", "due Sat 09:01", "reminder Sat 09:00", "reminder Sat 09:01"]);
}

#[tokio::test]
async fn a_reminder_at_the_due_time_replaces_each_due_notification() {
    // TRUST-2: no doubles
    let week = Week::start().await;
    let task = week.task("pills", "2026-03-27T08:00", "FREQ=DAILY").await;
    week.remind_of(&task, ReminderDraft { remind_at: Some("2026-03-27T08:00".into()), ..rule("FREQ=DAILY") }).await;
    assert_eq!(week.rings_until("2026-03-29T12:00").await, ["pills Fri 08:00", "pills Sat 08:00", "pills Sun 08:00"]);
    assert!(week.bench.titles_received().await.iter().all(|title| title.starts_with("Reminder")));
}

#[tokio::test]
async fn ticking_off_an_occurrence_does_not_end_its_reminders() {
    // TRUST-2
    let week = Week::start().await;
    let task = week.task("pay", "2026-03-27T10:00", "FREQ=DAILY;COUNT=3").await;
    week.remind_of(&task, before(60)).await;
    week.remind_of(&task, rule("FREQ=DAILY;BYHOUR=20;BYMINUTE=0")).await;
    assert_eq!(week.rings_until("2026-03-27T09:30").await, ["pay Thu 20:00", "pay Fri 09:00"]);
    let next = week.change_task(task.id, TaskChange::complete()).await.next_task.unwrap().unwrap();
    assert_eq!(week.rings_until("2026-03-28T09:30").await, ["pay Fri 20:00", "pay Sat 09:00"]);
    week.undo().await;
    assert_eq!(
        week.rings_until("2026-03-28T21:00").await,
        ["pay Sat 09:30", "pay Sat 10:00", "pay Sat 20:00"],
        "AGENT-13: the first task is open again; its missed due time rings once"
    );
    assert_ne!(next.id, task.id);
    let next = week.change_task(task.id, TaskChange::complete()).await.next_task.unwrap().unwrap();
    assert_eq!(week.rings_until("2026-03-29T12:00").await, ["pay Sun 09:00", "pay Sun 10:00"]);
    let ended = week.change_task(next.id, TaskChange::complete()).await;
    assert_eq!(ended.next_task, Some(None), "the last occurrence");
    assert_eq!(week.rings_until("2026-04-02T12:00").await, [""; 0]);
}

#[tokio::test]
async fn a_reminder_before_the_due_date_moves_with_it() {
    // TRUST-2
    let week = Week::start().await;
    let flight = week.task("flight", "2026-03-30T06:45", "").await;
    week.remind_of(&flight, before(1440)).await;
    week.remind_of(&flight, before(120)).await;
    let moved = week.patch_task(flight.id, due_date("2026-03-30T07:30")).await.moved_reminders;
    let times: Vec<_> = moved.iter().map(|reminder| reminder.next_at.unwrap()).collect();
    assert_eq!(times, [local("2026-03-29T07:30"), local("2026-03-30T05:30")], "a day keeps the time of day");
    assert_eq!(
        week.rings_until("2026-03-30T08:00").await,
        ["flight Sun 07:30", "flight Mon 05:30", "flight Mon 07:30"]
    );
    // A later flight: both ring again.
    week.patch_task(flight.id, due_date("2026-04-01")).await;
    assert_eq!(week.rings_until("2026-03-31T08:00").await, [""; 0]);
    assert_eq!(week.rings_until("2026-03-31T10:00").await, ["flight Tue 09:00"], "a day counts as 9:00");
    let dropped = week.patch_task(flight.id, due_date("")).await.dropped_reminders;
    assert_eq!(dropped.len(), 1, "the one that has not rung");
    week.undo().await;
    assert_eq!(week.rings_until("2026-04-02T12:00").await, ["flight Wed 07:00"], "AGENT-13");
}

#[tokio::test]
async fn a_snoozed_reminder_rings_again_and_goes_on() {
    // TRUST-2
    let week = Week::start().await;
    let once = week.remind("once", at("2026-03-27T09:00")).await;
    let daily = week.remind("daily", rule("FREQ=DAILY;BYHOUR=8;BYMINUTE=0")).await;
    assert_eq!(week.rings_until("2026-03-27T09:00").await, ["daily Fri 08:00", "once Fri 09:00"]);
    for (id, until) in [(once, "2026-03-27T09:10"), (daily, "2026-03-27T09:20")] {
        let until = local(until);
        change!(week, tx, step => reminders::snooze(tx, step, id, until)).unwrap();
    }
    assert_eq!(week.rings_until("2026-03-28T12:00").await, ["once Fri 09:10", "daily Fri 09:20", "daily Sat 08:00"]);
    // From its due time in the future.
    let later = local("2026-03-29T10:00");
    change!(week, tx, step => reminders::snooze(tx, step, daily, later)).unwrap();
    assert_eq!(week.rings_until("2026-03-30T12:00").await, ["daily Sun 10:00", "daily Mon 08:00"]);
    // A notification of a due task has no reminder yet.
    let task = week.task("call", "2026-03-30T13:00", "").await;
    assert_eq!(week.rings_until("2026-03-30T13:00").await, ["call Mon 13:00"]);
    let draft = ReminderDraft { task_id: task.id.to_string(), ..at("2026-03-30T13:15") };
    let now = week.bench.clock.now();
    for (minute, is_new) in [("13:15", true), ("13:30", false)] {
        let draft = ReminderDraft { remind_at: Some(format!("2026-03-30T{minute}")), ..draft.clone() };
        let new = draft.check(&week.bench.clock, &week.user, DEFAULT_TIME).unwrap();
        let snoozed = change!(week, tx, step => reminders::snooze_task(tx, step, &new, now)).unwrap();
        assert_eq!(snoozed.2, is_new);
        assert_eq!(week.rings_until(&format!("2026-03-30T{minute}")).await, [format!("call Mon {minute}")]);
    }
}

#[tokio::test]
async fn a_reminder_stops_when_told() {
    // TRUST-2, AGENT-13
    let week = Week::start().await;
    let daily = || rule("FREQ=DAILY;BYHOUR=8;BYMINUTE=0");
    let cancelled = week.remind("cancelled", daily()).await;
    let removed = week.remind("removed", daily()).await;
    let completed = week.task("completed", "", "").await;
    week.remind_of(&completed, daily()).await;
    let deleted = week.task("deleted", "", "").await;
    week.remind_of(&deleted, daily()).await;
    assert_eq!(week.rings_until("2026-03-27T12:00").await.len(), 4);
    let deleted_id = deleted.id;
    change!(week, tx, step => reminders::cancel(tx, step, cancelled)).unwrap();
    change!(week, tx, step => reminders::delete(tx, step, removed)).unwrap();
    week.change_task(completed.id, TaskChange::complete()).await;
    change!(week, tx, step => tasks::delete(tx, step, deleted_id)).unwrap();
    assert_eq!(week.rings_until("2026-03-28T07:00").await, [""; 0]);
    for _ in 0..4 {
        week.undo().await;
    }
    let mut rings = week.rings_until("2026-03-29T12:00").await;
    rings.sort();
    let names = ["cancelled", "completed", "deleted", "removed"];
    let expected: Vec<_> =
        names.iter().flat_map(|name| [format!("{name} Sat 08:00"), format!("{name} Sun 08:00")]).collect();
    assert_eq!(rings, expected);
}

#[tokio::test]
async fn a_changed_reminder_rings_at_its_new_times() {
    // TRUST-2, AGENT-13
    let week = Week::start().await;
    let id = week.remind("pills", rule("FREQ=DAILY;BYHOUR=8;BYMINUTE=0")).await;
    let apply = async |patch: ReminderPatch| {
        let clock = week.bench.clock.clone();
        let user = week.user.clone();
        let apply =
            move |reminder: &Reminder, task: &Task| patch.apply(reminder, task.due_date, &clock, &user, DEFAULT_TIME);
        change!(week, tx, step => reminders::change(tx, step, id, apply)).unwrap().0
    };
    apply(ReminderPatch { remind_at: Some("2026-03-27T09:15".into()), ..ReminderPatch::default() }).await;
    assert_eq!(week.rings_until("2026-03-28T12:00").await, ["pills Fri 09:15", "pills Sat 09:15"]);
    apply(ReminderPatch { recurrence: Some(Some("FREQ=WEEKLY;BYDAY=MO".into())), ..ReminderPatch::default() }).await;
    assert_eq!(week.rings_until("2026-03-31T12:00").await, ["pills Mon 09:15"], "it keeps the time of day");
    week.undo().await;
    assert_eq!(
        week.rings_until("2026-04-01T12:00").await,
        ["pills Tue 12:00", "pills Wed 09:15"],
        "daily again; Tuesday was late"
    );
    apply(ReminderPatch { recurrence: Some(None), ..ReminderPatch::default() }).await;
    assert_eq!(week.rings_until("2026-04-04T12:00").await, ["pills Thu 09:15"], "once more");
}

#[tokio::test]
async fn a_task_and_its_reminder_are_one_undo_step() {
    // AGENT-13, TRUST-2
    let week = Week::start().await;
    let draft = TaskDraft {
        title: "flight".into(),
        due_date: Some("2026-03-27T18:00".into()),
        remind_before_minutes: Some(120),
        ..TaskDraft::default()
    };
    let (_, reminder) = week.add(draft).await;
    assert_eq!(reminder.unwrap().next_at, Some(local("2026-03-27T16:00")));
    week.undo().await;
    assert_eq!(week.rings_until("2026-03-29T12:00").await, [""; 0]);
}
