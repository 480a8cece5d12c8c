//! A year of 200 random schedules in twelve zones, fired by a clock that jumps from time to time, and compared with an
//! implementation of cron that is not ours (PyPI's cronsim, which follows Debian's cron): none is missing, none is too many,
//! none is at another time.
//!
//! Cronsim leaves the days on which clocks change as they are for expressions with a second; for those that name their times
//! the hours around the change are left out of the comparison. Everything else is compared on these days too.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use model::schedule::{Draft, Kind};
use scheduler::when::When;
use serde_json::json;
use store::schedules;

use crate::bench::{Bench, START};

const ZONES: [&str; 12] = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Los_Angeles",
    "America/St_Johns",
    "America/Santiago",
    "Africa/Cairo",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Pacific/Auckland",
];
const SEED: u64 = 20_260_110;

struct Random(fastrand::Rng);

impl Random {
    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.0.usize(..of.len())]
    }

    fn number(&mut self, least: u32, most: u32) -> String {
        self.0.u32(least..=most).to_string()
    }

    fn list(&mut self, least: u32, most: u32) -> String {
        let numbers: Vec<_> = (0..self.0.usize(2..4)).map(|_| self.number(least, most)).collect();
        numbers.join(",")
    }

    fn range(&mut self, least: u32, most: u32) -> String {
        let a = self.0.u32(least..=most);
        let b = self.0.u32(least..=most);
        format!("{}-{}", a.min(b), a.max(b))
    }

    fn time(&mut self, most: u32, often: bool) -> String {
        match self.0.u32(0..if often { 7 } else { 4 }) {
            0..=1 => self.number(0, most),
            2 => self.list(0, most),
            3 => self.list(0, most.min(3)),
            4 => self.range(0, most),
            5 => format!("*/{}", self.0.u32(2..=most / 2)),
            _ => format!("{}/{}", self.range(0, most), self.0.u32(2..=7)),
        }
    }

    /// Hours in which clocks are changed come more often than they would by chance.
    fn hour(&mut self, often: bool) -> String {
        if self.0.bool() { self.number(0, 3) } else { self.time(23, often) }
    }

    fn day(&mut self) -> String {
        match self.0.u32(0..8) {
            0..=3 => "*".to_owned(),
            4 => self.number(1, 31),
            5 => self.list(1, 28),
            6 => self.one(&["L", "*/2", "LW", "1-7"]).to_owned(),
            _ => self.range(1, 28),
        }
    }

    fn month(&mut self) -> String {
        match self.0.u32(0..6) {
            0..=2 => "*".to_owned(),
            3 => self.one(&["MAR", "OCT", "mar,oct", "JAN-JUN", "4", "9-11"]).to_owned(),
            4 => format!("*/{}", self.0.u32(2..=5)),
            _ => self.range(1, 12),
        }
    }

    fn weekday(&mut self) -> String {
        match self.0.u32(0..8) {
            0..=3 => "*".to_owned(),
            4 => self.one(&["SUN", "sun,sat", "MON-FRI", "7", "0"]).to_owned(),
            5 => format!("{}#{}", self.0.u32(0..=6), self.0.u32(1..=5)),
            6 => format!("{}L", self.0.u32(0..=6)),
            _ => self.range(0, 6),
        }
    }

    fn expression(&mut self, often: bool) -> String {
        let mut fields = vec![self.time(59, often), self.hour(often), self.day(), self.month(), self.weekday()];
        if self.0.u32(0..6) == 0 {
            fields.insert(0, self.number(0, 59));
        }
        fields.join(" ")
    }
}

fn span() -> (Timestamp, Timestamp) {
    let from: Timestamp = START.parse().unwrap();
    (from, from + SignedDuration::from_hours(365 * 24))
}

fn when(expression: &str, zone: &str) -> Option<When> {
    let draft = Draft {
        name: Some("n".into()),
        agent_id: Some("many".into()),
        cron_expression: Some(expression.into()),
        time_zone: Some(zone.into()),
        ..Draft::default()
    };
    When::new(&draft.check(&TimeZone::UTC).unwrap(), START.parse().unwrap()).ok()
}

fn ours(when: &When, most: usize) -> Vec<i64> {
    let (from, until) = span();
    let times = std::iter::successors(when.after(from), |last| when.after(*last));
    times.take_while(|time| *time <= until).take(most).map(Timestamp::as_second).collect()
}

/// Random ones of which a year has from 1 to `most` times.
fn random(count: usize, often: bool, most: usize) -> Vec<(String, &'static str)> {
    let mut random = Random(fastrand::Rng::with_seed(SEED + u64::from(often)));
    let mut found: Vec<(String, &str)> = Vec::new();
    while found.len() < count {
        let expression = random.expression(often);
        let zone = ZONES[found.len() % ZONES.len()];
        let times = when(&expression, zone).map_or(0, |when| ours(&when, most + 1).len());
        if (1..=most).contains(&times) {
            found.push((expression, zone));
        }
    }
    found
}

fn peer(schedules: &[(String, &str)]) -> Vec<Vec<i64>> {
    let dir = std::env::var("ADJUTANT_TEST_CRON_PEER").unwrap_or_else(|_| {
        panic!(
            "ADJUTANT_TEST_CRON_PEER is not set: run the tests with scripts/check, or scripts/python-peer \
             cron-peer target/cron-peer and set it to the whole path of target/cron-peer"
        )
    });
    let (from, until) = span();
    let asked: Vec<_> = schedules.iter().map(|(expression, zone)| json!([expression, zone])).collect();
    let asked = json!({"from": from.as_second(), "until": until.as_second(), "schedules": asked});
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/cron-peer/occurrences.py");
    let mut process = Command::new(format!("{dir}/bin/python"))
        .arg(script)
        .env("PYTHONTZPATH", "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Whether the other implementation follows another rule around a change of the clock.
fn is_left_out(expression: &str, zone: &str, second: i64) -> bool {
    let fields: Vec<_> = expression.split_whitespace().collect();
    if fields.len() != 6 || fields[..3].iter().any(|field| field.starts_with('*')) {
        return false;
    }
    let time = Timestamp::from_second(second).unwrap();
    let change = TimeZone::get(zone).unwrap().following(time - 3.hours()).next().map(|change| change.timestamp());
    change.is_some_and(|change| change <= time + 3.hours())
}

fn compare(schedules: &[(String, &str)], found: &[Vec<i64>], theirs: &[Vec<i64>]) -> usize {
    assert_eq!((schedules.len(), found.len()), (theirs.len(), theirs.len()));
    let mut compared = 0;
    for (((expression, zone), found), theirs) in schedules.iter().zip(found).zip(theirs) {
        let kept = |times: &[i64]| {
            times.iter().copied().filter(|second| !is_left_out(expression, zone, *second)).collect::<Vec<_>>()
        };
        let found = kept(found);
        let theirs = kept(theirs);
        compared += theirs.len();
        let readable = |times: Vec<i64>| {
            let zone = TimeZone::get(zone).unwrap();
            let times = times.into_iter().map(|second| Timestamp::from_second(second).unwrap().to_zoned(zone.clone()));
            times.map(|time| time.to_string()).collect::<Vec<_>>()
        };
        let missing: Vec<_> = theirs.iter().filter(|time| !found.contains(time)).copied().collect();
        let extra: Vec<_> = found.iter().filter(|time| !theirs.contains(time)).copied().collect();
        let missing = readable(missing);
        let extra = readable(extra);
        assert!(missing.is_empty() && extra.is_empty(), "{expression} in {zone}: without {missing:?}, with {extra:?}");
        assert_eq!(found, theirs, "{expression} in {zone}: in their order, each once");
    }
    compared
}

#[tokio::test(flavor = "multi_thread")]
async fn a_year_of_two_hundred_schedules() {
    // SCHED-1, SCHED-4
    let schedules = random(200, false, 150);
    let bench = Bench::sqlite().await;
    let mut ids = Vec::new();
    for (expression, zone) in &schedules {
        let fields = json!({"cron_expression": expression, "time_zone": zone, "overlap": "allow"});
        ids.push(bench.create(fields).await.id);
    }
    let (_, until) = span();
    loop {
        let first = schedules::first_due(&mut bench.store().reader().await.unwrap()).await.unwrap();
        let Some(first) = first.filter(|first| *first <= until) else { break };
        bench.clock.set(first);
        bench.scheduler.fire_due().await.unwrap();
    }
    let mut found = Vec::new();
    let mut kinds = BTreeMap::<Kind, usize>::new();
    for id in ids {
        let history = bench.history(id).await;
        history.iter().for_each(|decision| *kinds.entry(decision.kind).or_default() += 1);
        assert!(history.iter().all(|decision| decision.due_at == decision.decided_at), "each at its time");
        assert_eq!(bench.executions(id).await.len(), history.len());
        found.push(history.iter().map(|decision| decision.due_at.as_second()).collect());
    }
    let compared = compare(&schedules, &found, &peer(&schedules));
    assert_eq!(kinds.keys().collect::<Vec<_>>(), [&Kind::Fired]);
    assert!(compared > 5000, "{compared}");
}

#[test]
fn those_that_come_often_too() {
    // SCHED-1: only when they are due, without running them
    let schedules = random(200, true, 20_000);
    let found: Vec<_> = schedules.iter().map(|(e, z)| ours(&when(e, z).unwrap(), usize::MAX)).collect();
    let compared = compare(&schedules, &found, &peer(&schedules));
    assert!(compared > 50_000, "{compared}");
}
