//! A parser that is skipped for a word would not match it.

use super::super::*;
use crate::tokens::TokenizedText;

/// Words that begin a piece, lead to one, or occur inside of one.
const VOCABULARY: &str = "a an the this next nxt last past coming every each once twice daily weekly monthly bi week \
    weekend weekends weekday weekdays weekend's day days night nights noon midnight tonight tonite am pm eod eom eow \
    eoy end close beginning start middle mid rest remainder early late today tomorrow yesterday tmrw morning mornings \
    afternoon evening eve nite lunchtime mon tue wed thurs fri sat sun monday tuesdays wednsday friday jan feb mar may \
    march april june december decembr high midweek month year quarter spring fall winter lunch dinner work school bed \
    dawn sunset supper business working now half couple few several some another one two three five ten twelve twenty \
    thirty first second third fifth twentieth new good all three christmas easter thanksgiving flag super black hour \
    hours minute minutes of at in on by for to and from after before past time thing o'clock hundred dozen pair basis \
    more other th month's next following current kings fools eve seasonal 3 3pm 15th 10:30 2nd 12 2027 , - . / + every \
    mwf fortnightly annually everyday overmorrow wknd sept aprl todya ago later back days' milk list call";

#[test]
fn skipped_parsers_would_not_match() {
    let vocabulary: Vec<&str> = VOCABULARY.split_whitespace().collect();
    let now: Zoned = super::LATE.parse().unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    let monthly = TokenizedText::new("monthly");
    let monthly = find(DateScan { words: &monthly, start: 0, end: 1, now: &now });
    let beside = [
        DateParts::default(),
        DateParts { weekday: Some((Weekday::Monday, PeriodQualifier::Plain)), ..DateParts::default() },
        monthly[0].parts.clone(),
        DateParts { part: Some(DayPart::Morning), ..DateParts::default() },
        DateParts { day: Some(Day::Monthly(3)), ..DateParts::default() },
    ];
    for _ in 0..60_000 {
        let length = random.usize(1..7);
        let text: Vec<&str> = (0..length).filter_map(|_| random.choice(&vocabulary).copied()).collect();
        let text = text.join(" ");
        let words = TokenizedText::new(&text);
        let scan = DateScan { words: &words, start: 0, end: words.len(), now: &now };
        let i = random.usize(0..words.len());
        let lead_start = i.saturating_sub(random.usize(0..3));
        let Some(parts) = random.choice(&beside) else { continue };
        let parsers = dispatch::parsers_for(&words, i);
        if parsers == 0 {
            continue;
        }
        let other_parsers = !parsers;
        assert!(
            parse_with(other_parsers, &scan, i, lead_start, parts).is_none(),
            "{text:?} at {i}, led from {lead_start}: {parsers:b}"
        );
    }
}
