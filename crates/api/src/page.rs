//! Listings: pages of items, and the parameters that select them.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

/// The maximum `limit` of a listing.
pub const MAX_LIMIT: i64 = 200;

/// A page of a listing: `{"tasks": […], "count": 2, "next_cursor": null}`.
pub trait ListPage: DeserializeOwned {
    type Item;

    /// Returns the items and the cursor of the next page.
    fn into_parts(self) -> (Vec<Self::Item>, Option<String>);
}

/// The parameters of a listing: its filters, `limit` and `cursor`.
pub trait ListParams: Serialize + Clone {
    type Page: ListPage;

    /// Returns the number of items per page, if it is set.
    fn limit(&self) -> Option<i64>;

    /// Returns the cursor of the page, `None` for the first one.
    fn cursor(&self) -> Option<&str>;

    /// Returns the same parameters for another page.
    #[must_use]
    fn with_page(self, limit: Option<i64>, cursor: Option<String>) -> Self;
}

/// Deserializes a UUID in a filter. Fails if it is malformed.
pub(crate) fn deserialize_uuid<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Uuid>, D::Error> {
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
            /// Returns a page of these items. `next_cursor` selects the next page.
            pub fn new($items: Vec<$item>, next_cursor: Option<String>) -> Self {
                Self { count: $items.len(), $items, next_cursor }
            }
        }

        impl $crate::ListPage for $name {
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
            /// The `next_cursor` of the previous page.
            pub cursor: Option<String>,
        }

        impl $crate::ListParams for $name {
            type Page = $page;

            fn limit(&self) -> Option<i64> {
                self.limit
            }

            fn cursor(&self) -> Option<&str> {
                self.cursor.as_deref()
            }

            fn with_page(mut self, limit: Option<i64>, cursor: Option<String>) -> Self {
                self.limit = limit;
                self.cursor = cursor;
                self
            }
        }
    };
}
