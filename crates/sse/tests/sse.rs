//! Tests of the decoder and the encoder: the rules of the specification, limits and chunk boundaries.

use std::time::Duration;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use sse::{KEEP_ALIVE, SseDecoder, SseEvent, SseLimits, TooLarge, encode_last_id};

const LIMITS: SseLimits = SseLimits { event: 1_000, total: 10_000 };

/// The id, name and data of an event.
type OwnedEvent = (Option<String>, String, Vec<u8>);

fn owned(event: SseEvent<'_>) -> OwnedEvent {
    (event.id.map(str::to_owned), event.name.to_owned(), event.data.to_vec())
}

fn event(id: Option<&str>, name: &str, data: &str) -> OwnedEvent {
    (id.map(str::to_owned), name.to_owned(), data.as_bytes().to_vec())
}

/// Decodes a stream that is received in chunks of `size` bytes.
fn decode(stream: &[u8], size: usize) -> Result<(Vec<OwnedEvent>, SseDecoder), TooLarge> {
    let mut decoder = SseDecoder::new(LIMITS);
    let mut events = Vec::new();
    for chunk in stream.chunks(size) {
        decoder.push(Bytes::copy_from_slice(chunk))?;
        while decoder.advance()? {
            events.push(owned(decoder.event()));
        }
    }
    Ok((events, decoder))
}

/// Decodes like [`decode`] and accepts an unfinished last event.
fn decode_all(stream: &[u8], size: usize) -> Result<Vec<OwnedEvent>, TooLarge> {
    let (mut events, mut decoder) = decode(stream, size)?;
    if decoder.finish() {
        events.push(owned(decoder.event()));
    }
    Ok(events)
}

#[test]
fn lines_end_in_cr_lf_or_both() {
    for end in ["\n", "\r\n", "\r"] {
        let lines = [": hello", "event: error", "data: {\"ü\":1}", "", "", "data:two", "data: lines", "", "data: x"];
        let stream = lines.join(end);
        for size in 1..=stream.len() {
            let expected =
                [event(None, "error", "{\"ü\":1}"), event(None, "", "two\nlines"), event(None, "", "x")].to_vec();
            assert_eq!(decode_all(stream.as_bytes(), size).unwrap(), expected, "{end:?} {size}");
        }
    }
}

#[test]
fn fields_are_read_as_specified() {
    let stream = "\u{feff}id: 0\nretry: 3000\n\n: comment\n\ndata: {\"a\":\"ü\"}\r\n\r\nid:7\nevent: done\ndata:{\ndata:  }\n\n\
                  \u{feff}data: a later mark is a part of its line\nid: a\0b\nretry: 1s\ndata\n\nevent: lost\n\nid\ndata:x\n\n";
    for size in 1..=stream.len() {
        let (events, decoder) = decode(stream.as_bytes(), size).unwrap();
        let expected = [
            event(None, "", "{\"a\":\"ü\"}"),
            event(Some("7"), "done", "{\n }"),
            event(None, "", ""),
            event(Some(""), "", "x"),
        ];
        assert_eq!(events, expected, "in chunks of {size}");
        assert_eq!(decoder.last_id(), Some(""));
        assert_eq!(decoder.retry(), Some(Duration::from_secs(3)));
    }
}

#[test]
fn a_block_without_data_sets_the_last_id() {
    let stream = format!("{}id: 13\n", encode_last_id(12));
    let (events, decoder) = decode(stream.as_bytes(), 3).unwrap();
    assert_eq!(events, []);
    assert_eq!(decoder.last_id(), Some("12"), "the second block has not ended");
}

#[test]
fn an_unfinished_event_is_returned_by_finish() {
    let (events, mut decoder) = decode(b"data: a\n\nevent: last\ndata: b", 4).unwrap();
    assert_eq!(events, [event(None, "", "a")]);
    assert!(decoder.finish());
    assert_eq!(owned(decoder.event()), event(None, "last", "b"));
    assert!(!decoder.finish(), "only once");
}

#[test]
fn the_start_of_unknown_lines_is_available() {
    let page = format!("{{\"error\":\"no\"}}\n{}", "<p>x</p>\n".repeat(100));
    let (events, decoder) = decode(page.as_bytes(), 64).unwrap();
    assert_eq!(events, []);
    assert!(decoder.ignored().starts_with(b"{\"error\":\"no\"}<p>"));
    assert_eq!(decoder.ignored().len(), 500);
}

#[test]
fn limits_are_enforced() {
    // RES-2
    let error = |stream: &[u8]| decode(stream, 64).map(|_| ()).unwrap_err();
    assert_eq!(error(&b"data: x".repeat(200)), TooLarge::Event(1_000), "a line");
    assert_eq!(error(&b"data: xxxxxxxx\n".repeat(200)), TooLarge::Event(1_000), "an event");
    assert_eq!(error(&b"data: x\n\n".repeat(2_000)), TooLarge::Stream(10_000));
    assert_eq!(decode_all(&b"data: x\n\n".repeat(1_000), 64).unwrap().len(), 1_000);
    let line = [&b"data: "[..], &[b'x'; 994], b"\n\n"].concat();
    assert_eq!(decode_all(&line.repeat(9), 64).unwrap().len(), 9, "an event of the maximum size");
}

#[test]
fn a_second_chunk_may_be_pushed_before_the_first_is_read() {
    let mut decoder = SseDecoder::new(SseLimits::per_event(100));
    decoder.push(Bytes::from_static(b"data: a\n\nda")).unwrap();
    decoder.push(Bytes::from_static(b"ta: b\n\n")).unwrap();
    assert!(decoder.advance().unwrap());
    assert_eq!(decoder.event().data, b"a");
    assert!(decoder.advance().unwrap());
    assert_eq!(decoder.event().data, b"b");
    assert!(!decoder.advance().unwrap());
}

#[test]
fn each_line_of_data_is_a_field() {
    let mut out = Vec::new();
    SseEvent { id: Some("3"), name: "message", data: b"a\r\nb\n\nc" }.encode(&mut out).unwrap();
    SseEvent { data: b"", ..SseEvent::default() }.encode(&mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text, "id: 3\nevent: message\ndata: a\ndata: b\ndata:\ndata: c\n\ndata:\n\n");
}

#[test]
fn a_field_with_a_line_break_is_rejected() {
    for bad in ["1\ndata: x", "1\rdata: x", "1\0"] {
        let mut out = Vec::new();
        assert!(SseEvent { id: Some(bad), name: "a", data: b"x" }.encode(&mut out).is_err(), "{bad:?}");
        assert!(SseEvent { id: Some("1"), name: bad, data: b"x" }.encode(&mut out).is_err(), "{bad:?}");
        assert!(out.is_empty());
    }
}

/// Generates streams from random fragments.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        "data",
        "event",
        "id",
        "retry",
        "x",
        ":",
        " ",
        "\r",
        "\n",
        "\r\n",
        "\n\n",
        "ü",
        "\u{feff}",
        "\0",
        "12",
        "data: a\n",
    ];
    vec(select(pieces.to_vec()), 0..40).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #[test]
    fn the_result_does_not_depend_on_the_chunks(stream in stream(), size in 1_usize..9) {
        let (events, decoder) = decode(&stream, size).unwrap();
        let (whole, whole_decoder) = decode(&stream, stream.len().max(1)).unwrap();
        prop_assert_eq!(events, whole);
        prop_assert_eq!(decoder.last_id(), whole_decoder.last_id());
        prop_assert_eq!(decoder.retry(), whole_decoder.retry());
        prop_assert_eq!(decoder.ignored(), whole_decoder.ignored());
        prop_assert_eq!(decode_all(&stream, size).unwrap(), decode_all(&stream, stream.len().max(1)).unwrap());
    }

    #[test]
    fn encoded_events_are_decoded(
        events in vec((proptest::option::of("[^\r\n\0]{0,9}"), "[^\r\n\0]{0,9}", "[a\r\n: ü]{0,30}"), 0..8),
        size in 1_usize..40,
    ) {
        let mut out = Vec::new();
        let mut expected = Vec::new();
        for (id, name, data) in &events {
            out.extend_from_slice(KEEP_ALIVE.as_bytes());
            SseEvent { id: id.as_deref(), name, data: data.as_bytes() }.encode(&mut out).unwrap();
            expected.push(event(id.as_deref(), name, &data.replace("\r\n", "\n").replace('\r', "\n")));
        }
        prop_assert_eq!(decode(&out, size).unwrap().0, expected);
    }

    #[test]
    fn no_event_exceeds_the_limit(stream in vec(select(b"data:x\r\n ".to_vec()), 0..3_000), size in 1_usize..500) {
        let decoded = decode(&stream, size);
        if let Ok((events, _)) = decoded {
            prop_assert!(events.iter().all(|(_, _, data)| data.len() <= LIMITS.event));
        }
    }
}
