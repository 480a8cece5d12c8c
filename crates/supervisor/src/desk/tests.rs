//! However output is cut and whenever it is written: the record has its beginning and its end, and a follower hears
//! everything once, or how much it did not hear.

use model::agent::Seconds;
use proptest::prelude::*;
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

/// One who reads what comes after the last number it has, and counts lines of this length.
struct Follower {
    line: usize,
    heard: Heard,
    after: i64,
    next: usize,
    gaps: usize,
    /// Of a line that has not ended.
    begun: String,
}

impl Follower {
    fn new(line: usize) -> Self {
        Self { line, heard: Heard::default(), after: 0, next: 0, gaps: 0, begun: String::new() }
    }

    fn read(&mut self, table: &Table) {
        for event in table.0.iter().filter(|event| event.seq > self.after).cloned().collect::<Vec<_>>() {
            self.after = event.seq;
            match self.heard.news(event) {
                Some(event) if event.kind == Kind::Gap => {
                    let bytes: usize = event.text.parse().unwrap();
                    assert_eq!((bytes % self.line, self.begun.as_str()), (0, ""));
                    self.next += bytes / self.line;
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
            assert_eq!(line.trim().trim_end_matches('.').parse(), Ok(self.next), "after {} gaps", self.gaps);
            self.next += 1;
        }
    }
}

/// Numbered, `length` bytes each; none could be a line of a key.
fn lines(length: usize, numbers: std::ops::Range<usize>) -> String {
    let width = length - 2;
    numbers.map(|number| format!("{number:>width$}.\n")).collect()
}

fn notes(max_output: u64) -> Notes {
    let now = Timestamp::UNIX_EPOCH;
    let mut execution = Execution::new(Uuid::nil(), "a", Seconds::new(1), now);
    execution.claim(now).unwrap();
    execution.start(None, now).unwrap();
    Notes::new(execution, 0, max_output, redactor(What { secrets: true, emails: true }))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    // SUP-10
    #[test]
    fn everything_once_or_how_much_is_missing(
        cuts in prop::collection::vec((1..400_usize, any::<bool>(), any::<bool>(), 0..4_u8), 1..60),
        max in 20..4000_u64,
        large in any::<bool>(),
    ) {
        // Small ones are less than a piece of the end, large ones are many.
        let (line, scale) = if large { (1000, 100) } else { (10, 1) };
        let max = max * scale as u64;
        let now = Timestamp::UNIX_EPOCH;
        let (mut notes, mut table, mut follower) = (notes(max), Table::default(), Follower::new(line));
        let mut slow = Follower::new(line);
        let count = cuts.iter().map(|(length, ..)| length * scale).sum::<usize>() / line + 1;
        let all = lines(line, 0..count);
        let mut rest = all.as_bytes();
        for (length, pause, flush, reads) in cuts {
            let (piece, after) = rest.split_at((length * scale).min(rest.len()));
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
        prop_assert_eq!((follower.next, slow.next), (count, count));
        // A glimpse has room for all that is small.
        prop_assert!(large || follower.gaps == 0 || batch.truncated);
        // Who comes when it is over.
        let mut late = Follower::new(line);
        late.read(&table);
        prop_assert_eq!(late.next, count);
        prop_assert!(late.gaps <= 1);
        prop_assert_eq!(late.gaps == 1, batch.truncated);
        let kept: usize = table.0.iter().filter(|event| event.kind == Kind::Output).map(|event| event.text.len()).sum();
        prop_assert!(kept <= usize::try_from(max).unwrap() + line, "{} of {}", kept, max);
    }
}

#[test]
fn what_follows_the_last_glimpse_is_heard() {
    let now = Timestamp::UNIX_EPOCH;
    let mut notes = notes(400);
    let mut table = Table::default();
    let mut follower = Follower::new(10);
    // The end is kept from the middle of the glimpse on.
    for range in [0..20, 20..35, 35..50] {
        notes.say(Name::Stdout, lines(10, range).as_bytes(), now);
        table.write(&notes.take(now).unwrap());
        follower.read(&table);
    }
    notes.say(Name::Stdout, lines(10, 50..55).as_bytes(), now);
    notes.finish_streams(now);
    table.write(&notes.batch());
    follower.read(&table);
    assert_eq!((follower.next, follower.gaps), (55, 0));
}

#[test]
fn a_key_that_comes_slowly_behind_the_head_is_not_shown() {
    let now = Timestamp::UNIX_EPOCH;
    let begin = "-----BEGIN PRIVATE KEY-----\n";
    let mut notes = notes(200_000);
    notes.say(Name::Stdout, "x\n".repeat((100_000 - begin.len()) / 2).as_bytes(), now);
    notes.say(Name::Stdout, begin.as_bytes(), now);
    let mut told = String::new();
    let body = "a1B2".repeat(16) + "\n";
    for _ in 0..50 {
        notes.say(Name::Stdout, body.as_bytes(), now);
        for _ in 0..50 {
            let batch = notes.take(now);
            told.extend(batch.into_iter().flat_map(|batch| batch.events).map(|event| event.text));
        }
    }
    assert!(notes.streams.is_past_head(Name::Stdout) && told.contains("x\n") && !told.contains("a1B2"));
    notes.say(Name::Stdout, b"-----END PRIVATE KEY-----\nover\n", now);
    let batch = notes.take(now).unwrap();
    assert_eq!(batch.events.last().unwrap().text, "[redacted]\nover\n");
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
