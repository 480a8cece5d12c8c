//! Listings: pages of items, and the parameters that select them.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

/// The largest `limit` that a listing accepts.
pub const MAX_LIMIT: i64 = 200;

/// A page of a listing: `{"tasks": […], "count": 2, "next_cursor": null}`.
pub trait Page: DeserializeOwned {
    type Item;

    /// Returns the items and the cursor of the page that follows.
    fn into_parts(self) -> (Vec<Self::Item>, Option<String>);
}

/// The parameters of a listing: its filters, `limit` and `cursor`.
pub trait List: Serialize + Clone {
    type Page: Page;

    fn limit(&self) -> Option<i64>;

    fn cursor(&self) -> Option<&str>;

    /// Returns the same parameters for another page.
    #[must_use]
    fn at(self, limit: Option<i64>, cursor: Option<String>) -> Self;
}

/// Deserializes a filter that is an id.
pub(crate) fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Uuid>, D::Error> {
    let text = String::deserialize(deserializer)?;
    Uuid::try_parse(&text).map(Some).map_err(|_| D::Error::custom("must be a UUID"))
}

/// Declares the page of a listing: `page! { /// Tasks. Tasks { tasks: Task } }`.
macro_rules! page {
    ($(#[$attribute:meta])* $name:ident { $(#[$of_items:meta])* $items:ident: $item:ty }) => {
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        $(#[$attribute])*
        pub struct $name {
            $(#[$of_items])*
            pub $items: Vec<$item>,
            /// The number of items on this page.
            pub count: usize,
            /// Selects the next page; null on the last one.
            pub next_cursor: Option<String>,
        }

        impl $name {
            /// Returns a page of these items. `next_cursor` selects the page that follows, if there is one.
            pub fn new($items: Vec<$item>, next_cursor: Option<String>) -> Self {
                Self { count: $items.len(), $items, next_cursor }
            }
        }

        impl $crate::Page for $name {
            type Item = $item;

            fn into_parts(self) -> (Vec<$item>, Option<String>) {
                (self.$items, self.next_cursor)
            }
        }
    };
}

/// Declares the parameters of a listing. Each filter is optional; `limit` and `cursor` are added.
macro_rules! list {
    ($(#[$attribute:meta])* $name:ident -> $page:ty {
        $($(#[$of_filter:meta])* $filter:ident: $kind:ty,)*
    }) => {
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, utoipa::IntoParams)]
        #[serde(default, deny_unknown_fields)]
        #[into_params(parameter_in = Query)]
        $(#[$attribute])*
        pub struct $name {
            $($(#[$of_filter])* pub $filter: Option<$kind>,)*
            /// Items per page; 50 by default.
            #[param(minimum = 1, maximum = 200)]
            pub limit: Option<i64>,
            /// The `next_cursor` of the page before.
            pub cursor: Option<String>,
        }

        impl $crate::List for $name {
            type Page = $page;

            fn limit(&self) -> Option<i64> {
                self.limit
            }

            fn cursor(&self) -> Option<&str> {
                self.cursor.as_deref()
            }

            fn at(mut self, limit: Option<i64>, cursor: Option<String>) -> Self {
                self.limit = limit;
                self.cursor = cursor;
                self
            }
        }
    };
}
