//! However output is cut and whenever it is written: the record has its beginning and its end, and a follower hears
//! everything once, or how much it did not hear.

use model::agent::Seconds;
use proptest::prelude::*;
use serde_json::Map;
use uuid::Uuid;

use super::*;
use crate::follow::Heard;

/// What the database would have.
#[derive(Default)]
struct Table(Vec<Event>);

impl Table {
    fn write(&mut self, batch: &Batch) {
        for (stream, from) in &batch.dropped {
            self.0.retain(|event| event.kind == Kind::State || event.stream != stream.as_str() || event.start < *from);
        }
        assert!(batch.events.windows(2).all(|pair| pair[0].seq < pair[1].seq));
        self.0.extend(batch.events.iter().cloned());
    }
}

/// One who reads what comes after the last number it has, and counts lines.
#[derive(Default)]
struct Follower {
    heard: Heard,
    after: i64,
    next: usize,
    gaps: usize,
    /// Of a line that has not ended.
    begun: String,
}

impl Follower {
    fn read(&mut self, table: &Table) {
        for event in table.0.iter().filter(|event| event.seq > self.after).cloned().collect::<Vec<_>>() {
            self.after = event.seq;
            match self.heard.news(event) {
                Some(event) if event.kind == Kind::Gap => {
                    let bytes: usize = event.text.parse().unwrap();
                    assert_eq!((bytes % LINE, self.begun.as_str()), (0, ""));
                    self.next += bytes / LINE;
                    self.gaps += 1;
                }
                Some(event) => self.lines(&event.text),
                None => {}
            }
        }
    }

    fn lines(&mut self, text: &str) {
        self.begun.push_str(text);
        let text = std::mem::take(&mut self.begun);
        for line in text.split_inclusive('\n') {
            if !line.ends_with('\n') {
                self.begun = line.to_owned();
                return;
            }
            assert_eq!(line.trim().parse(), Ok(self.next), "after {} gaps", self.gaps);
            self.next += 1;
        }
    }
}

const LINE: usize = 10;

fn notes(max_output: u64) -> Notes {
    let execution = Execution {
        id: Uuid::nil(),
        agent_id: String::new(),
        schedule_id: None,
        session_id: None,
        state: State::Running,
        previous_state: None,
        created_at: Timestamp::UNIX_EPOCH,
        start_time: None,
        end_time: None,
        last_state_change: Timestamp::UNIX_EPOCH,
        input: String::new(),
        process_id: None,
        exit_code: None,
        error_message: None,
        error_category: None,
        retry_count: 0,
        max_retries: 0,
        attempt: 1,
        timeout: Seconds::new(1),
        resource_usage: None,
        context: Map::new(),
        queue_position: None,
        state_transitions: Vec::new(),
        previous_retries: Vec::new(),
    };
    Notes::new(execution, 0, max_output, redactor(What { secrets: true, emails: true }))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    // SUP-10
    #[test]
    fn everything_once_or_how_much_is_missing(
        cuts in prop::collection::vec((1..400_usize, any::<bool>(), any::<bool>(), 0..4_u8), 1..60),
        max in 20..4000_u64,
    ) {
        let now = Timestamp::UNIX_EPOCH;
        let (mut notes, mut table, mut follower) = (notes(max), Table::default(), Follower::default());
        let mut slow = Follower::default();
        let lines: usize = cuts.iter().map(|(length, ..)| length).sum::<usize>() / LINE + 1;
        let all: String = (0..lines).map(|line| format!("{line:>9}\n")).collect();
        let mut rest = all.as_bytes();
        for (length, pause, flush, reads) in cuts {
            let (piece, after) = rest.split_at(length.min(rest.len()));
            rest = after;
            notes.say(Name::Stdout, piece, now);
            if pause {
                notes.pause(Name::Stdout, now);
            }
            if flush {
                if let Some(batch) = notes.take(now) {
                    table.write(&batch);
                }
                follower.read(&table);
                if reads == 0 {
                    slow.read(&table);
                }
            }
        }
        notes.say(Name::Stdout, rest, now);
        notes.finish_streams(now);
        let batch = notes.batch();
        table.write(&batch);
        follower.read(&table);
        slow.read(&table);
        prop_assert_eq!((follower.next, slow.next), (lines, lines));
        prop_assert_eq!(follower.gaps > 0, follower.gaps > 0 && batch.truncated);
        // Who comes when it is over.
        let mut late = Follower::default();
        late.read(&table);
        prop_assert_eq!(late.next, lines);
        prop_assert!(late.gaps <= 1);
        prop_assert_eq!(late.gaps == 1, batch.truncated);
        let kept: usize = table.0.iter().filter(|event| event.kind == Kind::Output).map(|event| event.text.len()).sum();
        prop_assert!(kept <= usize::try_from(max).unwrap() + LINE, "{} of {}", kept, max);
    }
}

#[test]
fn what_was_not_written_goes_with_the_end() {
    let now = Timestamp::UNIX_EPOCH;
    let mut notes = notes(1000);
    notes.say(Name::Stdout, b"one\n", now);
    let first = notes.take(now).unwrap();
    notes.say(Name::Stdout, b"two\n", now);
    notes.finish_streams(now);
    let last = notes.batch().behind(&first);
    let text: String = last.events.iter().map(|event| event.text.as_str()).collect();
    assert_eq!(text, "one\ntwo\n");
    assert!(last.events.windows(2).all(|pair| pair[0].seq < pair[1].seq));
}

#[test]
fn nothing_is_written_behind_the_end() {
    let now = Timestamp::UNIX_EPOCH;
    let mut notes = notes(20);
    notes.say(Name::Stdout, "a line of some length\n".repeat(9).as_bytes(), now);
    notes.finish_streams(now);
    notes.closed = true;
    drop(notes.batch());
    assert!(notes.take(now).is_none());
}
