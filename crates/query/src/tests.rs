//! Tests of query strings: values, rejections and the names in errors.

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    q: Option<String>,
    limit: Option<u32>,
    ended: Option<bool>,
    order: Option<SortOrder>,
    after: Option<RowId>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum SortOrder {
    Newest,
    OldestFirst,
}

#[derive(Debug, Deserialize, PartialEq)]
struct RowId(i64);

#[derive(Debug, Deserialize)]
struct LenientQuery {
    name: String,
}

fn rejection(query: &str) -> (String, String) {
    let error = parse::<ListQuery>(query).unwrap_err();
    (error.parameter, error.reason.to_string())
}

#[test]
fn a_struct_is_deserialized() {
    let list = parse::<ListQuery>("q=two+words%21+%C3%BC&limit=5&&ended=true&order=oldest_first&after=-3").unwrap();
    let expected = ListQuery {
        q: Some("two words! ü".to_owned()),
        limit: Some(5),
        ended: Some(true),
        order: Some(SortOrder::OldestFirst),
        after: Some(RowId(-3)),
    };
    assert_eq!(list, expected);
    assert_eq!(parse::<ListQuery>("").unwrap(), ListQuery::default());
    assert_eq!(parse::<ListQuery>("q=").unwrap().q.as_deref(), Some(""));
    assert_eq!(parse::<LenientQuery>("name=a%3Db=c&other=1").unwrap().name, "a=b=c");
}

#[test]
fn every_error_names_its_parameter() {
    for (query, parameter, reason) in [
        ("q=%ff", "q", "must be valid UTF-8"),
        ("%ff=1", "query", "must be valid UTF-8"),
        ("q=a%00", "q", "must not contain NUL"),
        ("q%00=a", "query", "must not contain NUL"),
        ("q=a&limit=1&q=b", "q", "must be given only once"),
        ("q=a&%71=b", "q", "must be given only once"),
        ("x=1", "x", "is not a known parameter; expected one of q, limit, ended, order, after"),
        ("limit=", "limit", "must be a whole number that is not negative"),
        ("limit=-1", "limit", "must be a whole number that is not negative"),
        ("q=1&after=soon", "after", "must be a whole number"),
        ("ended=yes", "ended", "must be true or false"),
        ("order=up", "order", "must be one of newest, oldest_first"),
    ] {
        assert_eq!(rejection(query), (parameter.to_owned(), reason.to_owned()), "{query}");
    }
    let error = parse::<LenientQuery>("other=1").unwrap_err();
    assert_eq!((error.parameter.as_str(), error.reason), ("name", Reason::Missing));
}

#[test]
fn iteration_continues_after_a_rejected_pair() {
    let names: Vec<_> = pairs("a=%ff&b=1&a=2").map(|pair| pair.map(|(name, _)| name.into_owned()).ok()).collect();
    assert_eq!(names, [None, Some("b".to_owned()), Some("a".to_owned())]);
}

proptest! {
    #[test]
    fn encoded_values_are_decoded(text in "[^\0]{0,20}") {
        let query = form_urlencoded::Serializer::new(String::new()).append_pair("q", &text).finish();
        prop_assert_eq!(parse::<ListQuery>(&query).unwrap().q, Some(text));
    }

    #[test]
    fn no_query_causes_a_panic(query in "[a-z%0-9&=+ü]{0,40}") {
        let _ = parse::<ListQuery>(&query);
        prop_assert!(pairs(&query).count() <= query.len());
    }
}
