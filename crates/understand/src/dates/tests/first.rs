//! A reader that is not asked about a word would have refused it.

use super::super::*;
use crate::tokens::Words;

/// Words that begin a piece, lead to one or stand within one.
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
fn readers_that_are_not_asked_would_refuse() {
    let vocabulary: Vec<&str> = VOCABULARY.split_whitespace().collect();
    let now: Zoned = super::LATE.parse().unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    let monthly = Words::new("monthly");
    let monthly = find(Scan { words: &monthly, start: 0, end: 1, now: &now });
    let beside = [
        Parts::default(),
        Parts { weekday: Some((Weekday::Monday, Which::Plain)), ..Parts::default() },
        monthly[0].parts.clone(),
        Parts { part: Some(Part::Morning), ..Parts::default() },
        Parts { day: Some(Day::Monthly(3)), ..Parts::default() },
    ];
    for _ in 0..60_000 {
        let length = random.usize(1..7);
        let text: Vec<&str> = (0..length).filter_map(|_| random.choice(&vocabulary).copied()).collect();
        let text = text.join(" ");
        let words = Words::new(&text);
        let scan = Scan { words: &words, start: 0, end: words.len(), now: &now };
        let i = random.usize(0..words.len());
        let own = i.saturating_sub(random.usize(0..3));
        let Some(parts) = random.choice(&beside) else { continue };
        let readers = first::readers(&words, i);
        if readers == 0 {
            continue;
        }
        let others = !readers;
        assert!(read_by(others, &scan, i, own, parts).is_none(), "{text:?} at {i}, led from {own}: {readers:b}");
    }
}
