//! Words of other trades (weather, music, money, travel, messages …): with no word for a task near, a sentence that
//! holds one of them is not about tasks.

use crate::clause::Clause;
use crate::lexicon::{self, Noun};
use crate::phrases::{Phrases, phrases};

pub(crate) const FOREIGN: Phrases = phrases!(
    "weather | forecast | temperature | rain | raining | rainy | snow | snowing | sunny | umbrella | humidity | \
     celsius | fahrenheit | degrees | storm | storms | wind | windy | song | songs | music | playlist | playlists | \
     album | artist | radio | podcast | spotify | pandora | track | volume | audiobook | station | lyrics | band | \
     genre | concert | concerts | episode | voice | light | lights | lamp | thermostat | vacuum | roomba | socket | \
     plug | brightness | tv | email | emails | mail | inbox | tweet | tweets | twitter | facebook | instagram | \
     message | messages | text | texts | voicemail | whatsapp | contact | contacts | bank | account | accounts | \
     balance | credit | card | transfer | transaction | transactions | spending | loan | mortgage | pin | apr | \
     401k | payday | paycheck | insurance | routing | checks | bill | bills | stock | stocks | dollar | dollars | \
     rupees | euro | exchange | currency | fraud | overdraft | w2 | w4 | pto | vacation | holiday | holidays | \
     inches | meters | benefits | stats | cart | flight | flights | hotel | hotels | plane | airline | airlines | \
     airport | luggage | passport | visa | taxi | uber | lyft | cab | train | ticket | tickets | reservation | \
     reservations | rental | travel | vaccinations | traffic | directions | route | navigate | commute | map | \
     highway | road | miles | mileage | gps | freeway | interstate | restaurant | restaurants | recipe | recipes | \
     calories | ingredients | cook | pizza | takeout | delivery | cuisine | meal | tire | tires | gas | gallons | \
     mpg | oil | joke | jokes | meaning | definition | define | translate | spell | spelling | capital | \
     president | population | history | wikipedia | news | headlines | results | language | accent | name | \
     whisper | speed | user | username | prompt | system | password | device | phone | timezone | alarm | alarms | \
     timer | timers | time | clock | calendar | score | scores | play | order"
);

/// What people plan: a task may be named by it, a question about it is for a calendar.
pub(crate) const PLANS: Phrases =
    phrases!("meeting | meetings | event | events | appointment | appointments | game | games | movie | movies");

/// Whether what is to be added or created at `i` can be no task: "this song", "alarm for 7", "milk to my cart".
pub(crate) fn is_elsewhere(clause: &Clause, i: usize) -> bool {
    const THINGS: Phrases = phrases!(
        "song | songs | music | playlist | playlists | album | albums | track | artist | radio | podcast | alarm | \
         alarms | timer | timers | event | events | contact | contacts | tweet | message | messages | text | email | \
         voicemail | video message | voice message | text message | station | calendar event | calendar entry"
    );
    const PLACES: Phrases = phrases!(
        "playlist | playlists | calendar | calendars | contact | contacts | library | queue | cart | basket | \
         favorites | favourites | spotify | pandora | radio | facebook | twitter | instagram | album | \
         alarms | station"
    );
    if clause.has_noun() {
        return false;
    }
    let heard = |k: usize| matches!(clause.before(k), "listen" | "reply" | "respond" | "subscribe" | "go");
    let place = (i + 1..clause.end).rev().find(|k| matches!(clause.at(*k), "to" | "on" | "in" | "into") && !heard(*k));
    let placed = place.is_some_and(|to| (to + 1..clause.end.min(to + 5)).any(|k| PLACES.contains(clause.at(k))));
    let start = (i..clause.end.min(i + 3))
        .find(|k| !lexicon::is_article(clause.at(*k)) && clause.at(*k) != "new")
        .unwrap_or(clause.end);
    // "email" alone before a name is what is to be done: "email Bob".
    let ends = |at: usize| start > i || !clause.words.is_word(at) || at >= clause.end || is_joint(clause.at(at));
    placed || clause.phrase(start, THINGS).is_some_and(|n| ends(start + n))
}

fn is_joint(word: &str) -> bool {
    matches!(word, "for" | "to" | "at" | "on" | "called" | "named" | "by" | "from" | "in")
}

/// Whether what is named at `i` is a thing of a computer, a shop or a phone and no task: "the photo", "my cart",
/// "this file".
pub(crate) fn is_thing(clause: &Clause, i: usize) -> bool {
    const THINGS: Phrases = phrases!(
        "photo | photos | picture | pictures | image | images | video | videos | file | files | folder | folders | \
         document | documents | pdf | docx | spreadsheet | screen | screenshot | screenshots | chat | font | \
         sentence | purchase | ringtone | subtitles | friend | ride | navigation | membership | caller | page | \
         paragraph | tab | tabs | window | bookmark | bookmarks | bass | background | cache | cookies | browser | \
         app | apps | wallpaper | theme | brightness | level | film | films | series | character | characters | \
         column | row | cell | branch | code | directory | drive | desktop | clipboard | download | downloads | \
         reservation | route | setting | settings | history | profile | bio | status"
    );
    const PLACES: Phrases = phrases!(
        "cart | basket | bookmarks | watchlist | route | reservation | order | friend | clock | folder | drive | \
         desktop | timer | file | document | chat | group | screen | block list | blocklist | favourites | \
         favorites | library | queue | contacts | wishlist | cloud | world clock | pizza | photo | picture"
    );
    if clause.words.of_tasks {
        return false;
    }
    let joint = |k: &usize| {
        !clause.words.is_word(*k)
            || matches!(
                clause.at(*k),
                "to" | "from" | "with" | "for" | "on" | "in" | "as" | "off" | "into" | "and" | "at" | "so" | "please"
            )
            || clause.date_at(*k).is_some()
    };
    let end = (i..clause.end).find(joint).unwrap_or(clause.end);
    let head = clause.at(end.saturating_sub(1));
    let named = end > i && end - i <= 4 && THINGS.contains(head) && !clause.words.is_quoted(i) && !clause.has_noun();
    let verbless = end == i || lexicon::is_article(clause.at(i)) || end - i <= 2;
    let place = (end..clause.end).rev().find(|k| matches!(clause.at(*k), "to" | "from" | "in" | "as" | "into"));
    let placed = place.is_some_and(|at| {
        let own = lexicon::is_article(clause.at(at + 1));
        own && (at + 2..clause.end.min(at + 6))
            .any(|k| clause.phrase(k, PLACES).is_some_and(|n| clause.is_spent(k + n..clause.end)))
    });
    named && verbless || placed
}

/// Whether it is written for a machine: a query, a line of a program.
pub(crate) fn is_code(clause: &Clause) -> bool {
    if !clause.has(phrases!("= | < | { | + +")) {
        return false;
    }
    let assigns = clause.has(phrases!("="));
    let marks = clause.has(phrases!("; | { | } | ( | where | < | [")) || clause.words.at(clause.end) == ";";
    clause.has(phrases!("< | + +")) && marks
        || assigns && marks && !clause.has(phrases!("- >"))
        || clause.has(phrases!("{")) && clause.has(phrases!("}"))
}

/// Whether the word belongs to another trade.
pub(crate) fn is_foreign(word: &str) -> bool {
    FOREIGN.contains(word) || PLANS.contains(word)
}

/// Whether a "list" in the clause is one of songs or of names.
pub(crate) fn is_media(clause: &Clause) -> bool {
    clause.has(phrases!(
        "playlist | playlists | play list | top 40 list | block list | watch list | christmas list on spotify | \
         wait list | waiting list | song list | track list | wine list | price list | contact list | contacts list | \
         guest list | mailing list | friend list | friends list | list of restaurants | ingredients list | \
         ingredient list | list of ingredients | list of songs | song on | songs on"
    ))
}

/// Whether what stands on a list is to be bought at once.
pub(crate) fn is_order(clause: &Clause) -> bool {
    clause.has(phrases!("order | ordered"))
        && clause.noun_in(clause.start..clause.end).is_some_and(|noun| noun.noun != Noun::Reminder)
}

/// Whether an "alert" in the clause is a warning about the world and not a reminder.
pub(crate) fn is_warning(clause: &Clause) -> bool {
    clause.has(phrases!(
        "travel | travelling | traveling | weather | storm | flood | tornado | hurricane | quality | amber | \
         emergency | severe | news | email | fraud | heat | wind | traffic | bank | politics | market | safe | \
         country"
    ))
}
