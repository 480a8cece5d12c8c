//! Tests with random chunks and random writes. The record has the head and the tail of the output. A follower receives
//! every byte once, or a gap with the number of missing bytes.

use model::agent::Seconds;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::delivered::DeliveredOffsets;

/// The events as the database would store them.
#[derive(Default)]
struct TestEventTable(Vec<ExecutionEvent>);

impl TestEventTable {
    fn write(&mut self, batch: &RecordBatch) {
        for (stream, from) in &batch.truncations {
            self.0.retain(|event| {
                event.kind == ExecutionEventKind::State || event.stream != stream.as_str() || event.start < *from
            });
        }
        assert!(batch.events.windows(2).all(|pair| pair[0].seq < pair[1].seq));
        self.0.extend(batch.events.iter().cloned());
    }
}

/// Reads the events after the last one that it has read, and counts lines of this length.
struct TestFollower {
    line: usize,
    delivered: DeliveredOffsets,
    after: i64,
    next: usize,
    gaps: usize,
    /// The beginning of an unfinished line.
    partial_line: String,
}

impl TestFollower {
    fn new(line: usize) -> Self {
        Self { line, delivered: DeliveredOffsets::default(), after: 0, next: 0, gaps: 0, partial_line: String::new() }
    }

    fn read(&mut self, table: &TestEventTable) {
        for event in table.0.iter().filter(|event| event.seq > self.after).cloned().collect::<Vec<_>>() {
            self.after = event.seq;
            match self.delivered.undelivered(event) {
                Some(event) if event.kind == ExecutionEventKind::Gap => {
                    let bytes: usize = event.text.parse().unwrap();
                    assert_eq!((bytes % self.line, self.partial_line.as_str()), (0, ""));
                    self.next += bytes / self.line;
                    self.gaps += 1;
                }
                Some(event) => self.lines(&event.text),
                None => {}
            }
        }
    }

    fn lines(&mut self, text: &str) {
        self.partial_line.push_str(text);
        let text = std::mem::take(&mut self.partial_line);
        for line in text.split_inclusive('\n') {
            if !line.ends_with('\n') {
                self.partial_line = line.to_owned();
                return;
            }
            assert_eq!(line.trim().trim_end_matches('.').parse(), Ok(self.next), "after {} gaps", self.gaps);
            self.next += 1;
        }
    }
}

/// Returns numbered lines of `length` bytes. None can be a line of a private key.
fn lines(length: usize, numbers: std::ops::Range<usize>) -> String {
    let width = length - 2;
    numbers.map(|number| format!("{number:>width$}.\n")).collect()
}

fn pending_record(max_output: u64) -> PendingRecord {
    let now = Timestamp::UNIX_EPOCH;
    let mut execution = Execution::new(Uuid::nil(), "a", Seconds::new(1), now);
    execution.claim(now).unwrap();
    execution.start(None, now).unwrap();
    PendingRecord::new(execution, 0, max_output, redactor(RedactOptions { secrets: true, emails: true }))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    // SUP-10
    #[test]
    fn followers_receive_every_byte_once_or_a_gap(
        cuts in prop::collection::vec((1..400_usize, any::<bool>(), any::<bool>(), 0..4_u8), 1..60),
        max in 20..4000_u64,
        large in any::<bool>(),
    ) {
        // Small outputs are shorter than one piece of the tail, large ones are many pieces long.
        let (line, scale) = if large { (1000, 100) } else { (10, 1) };
        let max = max * scale as u64;
        let now = Timestamp::UNIX_EPOCH;
        let mut pending = pending_record(max);
        let mut table = TestEventTable::default();
        let mut follower = TestFollower::new(line);
        let mut slow = TestFollower::new(line);
        let count = cuts.iter().map(|(length, ..)| length * scale).sum::<usize>() / line + 1;
        let all = lines(line, 0..count);
        let mut rest = all.as_bytes();
        for (length, pause, flush, reads) in cuts {
            let (piece, after) = rest.split_at((length * scale).min(rest.len()));
            rest = after;
            pending.push_output(StreamName::Stdout, piece, now);
            if pause {
                pending.release_partial_line(StreamName::Stdout, now);
            }
            if flush {
                if let Some(batch) = pending.take_batch(now) {
                    table.write(&batch);
                }
                follower.read(&table);
                if reads == 0 {
                    slow.read(&table);
                }
            }
        }
        pending.push_output(StreamName::Stdout, rest, now);
        pending.finish_streams(now);
        let batch = pending.batch();
        table.write(&batch);
        follower.read(&table);
        slow.read(&table);
        prop_assert_eq!((follower.next, slow.next), (count, count));
        // All of a small output fits into the provisional output.
        prop_assert!(large || follower.gaps == 0 || batch.truncated);
        // A follower that starts after the end.
        let mut late = TestFollower::new(line);
        late.read(&table);
        prop_assert_eq!(late.next, count);
        prop_assert!(late.gaps <= 1);
        prop_assert_eq!(late.gaps == 1, batch.truncated);
        let outputs = table.0.iter().filter(|event| event.kind == ExecutionEventKind::Output);
        let stored: usize = outputs.map(|event| event.text.len()).sum();
        prop_assert!(stored <= usize::try_from(max).unwrap() + line, "{} of {}", stored, max);
    }
}

#[test]
fn output_after_the_last_provisional_output_is_delivered() {
    let now = Timestamp::UNIX_EPOCH;
    let mut pending = pending_record(400);
    let mut table = TestEventTable::default();
    let mut follower = TestFollower::new(10);
    // The tail starts in the middle of the provisional output.
    for range in [0..20, 20..35, 35..50] {
        pending.push_output(StreamName::Stdout, lines(10, range).as_bytes(), now);
        table.write(&pending.take_batch(now).unwrap());
        follower.read(&table);
    }
    pending.push_output(StreamName::Stdout, lines(10, 50..55).as_bytes(), now);
    pending.finish_streams(now);
    table.write(&pending.batch());
    follower.read(&table);
    assert_eq!((follower.next, follower.gaps), (55, 0));
}

#[test]
fn a_private_key_that_arrives_slowly_after_the_head_is_redacted() {
    let now = Timestamp::UNIX_EPOCH;
    let begin = "-----BEGIN PRIVATE KEY-----\n";
    let mut pending = pending_record(200_000);
    pending.push_output(StreamName::Stdout, "x\n".repeat((100_000 - begin.len()) / 2).as_bytes(), now);
    pending.push_output(StreamName::Stdout, begin.as_bytes(), now);
    let mut delivered = String::new();
    let body = "a1B2".repeat(16) + "\n";
    for _ in 0..50 {
        pending.push_output(StreamName::Stdout, body.as_bytes(), now);
        for _ in 0..50 {
            let batch = pending.take_batch(now);
            delivered.extend(batch.into_iter().flat_map(|batch| batch.events).map(|event| event.text));
        }
    }
    assert!(
        pending.streams.is_past_head(StreamName::Stdout) && delivered.contains("x\n") && !delivered.contains("a1B2")
    );
    pending.push_output(StreamName::Stdout, b"-----END PRIVATE KEY-----\nover\n", now);
    let batch = pending.take_batch(now).unwrap();
    assert_eq!(batch.events.last().unwrap().text, "[redacted]\nover\n");
}

#[test]
fn a_failed_batch_is_merged_into_the_last_one() {
    let now = Timestamp::UNIX_EPOCH;
    let mut pending = pending_record(1000);
    pending.push_output(StreamName::Stdout, b"one\n", now);
    let first = pending.take_batch(now).unwrap();
    pending.push_output(StreamName::Stdout, b"two\n", now);
    pending.finish_streams(now);
    let last = pending.batch().merge_after(&first);
    let text: String = last.events.iter().map(|event| event.text.as_str()).collect();
    assert_eq!(text, "one\ntwo\n");
    assert!(last.events.windows(2).all(|pair| pair[0].seq < pair[1].seq));
}

#[test]
fn nothing_is_written_after_the_end() {
    let now = Timestamp::UNIX_EPOCH;
    let mut pending = pending_record(20);
    pending.push_output(StreamName::Stdout, "a line of some length\n".repeat(9).as_bytes(), now);
    pending.finish_streams(now);
    pending.closed = true;
    drop(pending.batch());
    assert!(pending.take_batch(now).is_none());
}
