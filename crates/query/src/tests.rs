//! Tests of query strings: values, refusals and the names in errors.

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct List {
    q: Option<String>,
    limit: Option<u32>,
    ended: Option<bool>,
    order: Option<Order>,
    after: Option<Id>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Order {
    Newest,
    OldestFirst,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Id(i64);

#[derive(Debug, Deserialize)]
struct Lenient {
    name: String,
}

fn refused(query: &str) -> (String, String) {
    let error = parse::<List>(query).unwrap_err();
    (error.parameter, error.reason.to_string())
}

#[test]
fn a_struct_is_read() {
    let list = parse::<List>("q=two+words%21+%C3%BC&limit=5&&ended=true&order=oldest_first&after=-3").unwrap();
    let expected = List {
        q: Some("two words! ü".to_owned()),
        limit: Some(5),
        ended: Some(true),
        order: Some(Order::OldestFirst),
        after: Some(Id(-3)),
    };
    assert_eq!(list, expected);
    assert_eq!(parse::<List>("").unwrap(), List::default());
    assert_eq!(parse::<List>("q=").unwrap().q.as_deref(), Some(""));
    assert_eq!(parse::<Lenient>("name=a%3Db=c&other=1").unwrap().name, "a=b=c");
}

#[test]
fn every_refusal_names_its_parameter() {
    for (query, parameter, reason) in [
        ("q=%ff", "q", "must be valid UTF-8"),
        ("%ff=1", "query", "must be valid UTF-8"),
        ("q=a%00", "q", "must not contain NUL"),
        ("q%00=a", "query", "must not contain NUL"),
        ("q=a&limit=1&q=b", "q", "must be given only once"),
        ("q=a&%71=b", "q", "must be given only once"),
        ("x=1", "x", "is not a parameter here; known: q, limit, ended, order, after"),
        ("limit=", "limit", "must be a whole number that is not negative"),
        ("limit=-1", "limit", "must be a whole number that is not negative"),
        ("q=1&after=soon", "after", "must be a whole number"),
        ("ended=yes", "ended", "must be true or false"),
        ("order=up", "order", "must be one of newest, oldest_first"),
    ] {
        assert_eq!(refused(query), (parameter.to_owned(), reason.to_owned()), "{query}");
    }
    let error = parse::<Lenient>("other=1").unwrap_err();
    assert_eq!((error.parameter.as_str(), error.reason), ("name", Reason::Missing));
}

#[test]
fn a_refused_pair_does_not_hide_the_others() {
    let names: Vec<_> = pairs("a=%ff&b=1&a=2").map(|pair| pair.map(|(name, _)| name.into_owned()).ok()).collect();
    assert_eq!(names, [None, Some("b".to_owned()), Some("a".to_owned())]);
}

proptest! {
    #[test]
    fn what_is_encoded_is_read(text in "[^\0]{0,20}") {
        let query = form_urlencoded::Serializer::new(String::new()).append_pair("q", &text).finish();
        prop_assert_eq!(parse::<List>(&query).unwrap().q, Some(text));
    }

    #[test]
    fn no_query_panics(query in "[a-z%0-9&=+ü]{0,40}") {
        let _ = parse::<List>(&query);
        prop_assert!(pairs(&query).count() <= query.len());
    }
}
