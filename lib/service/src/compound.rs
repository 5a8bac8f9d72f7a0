//! Types that have parts: options, results, tuples.

use crate::wire::{Body, Bytes, Malformed, TooLong, Wire, Words, skip};

impl<'a, T: Wire<'a>> Wire<'a> for Option<T> {
    const FLAT: usize = 1 + T::FLAT;

    #[inline(always)]
    fn flat(&self, put: &mut impl FnMut(u64)) {
        match self {
            None => {
                put(0);
                (0..T::FLAT).for_each(|_| put(0));
            }
            Some(value) => {
                put(1);
                value.flat(put);
            }
        }
    }

    fn body(&self, body: &mut Body<'_>) -> Result<(), TooLong> {
        self.as_ref().map_or(Ok(()), |value| value.body(body))
    }

    #[inline(always)]
    fn take(words: &mut impl Words, body: &mut Bytes<'a>) -> Result<Self, Malformed> {
        match words.next() {
            0 => {
                skip(words, T::FLAT);
                Ok(None)
            }
            1 => T::take(words, body).map(Some),
            _ => Err(Malformed),
        }
    }
}

impl<'a, T: Wire<'a>, E: Wire<'a>> Wire<'a> for Result<T, E> {
    const FLAT: usize = 1 + if T::FLAT > E::FLAT { T::FLAT } else { E::FLAT };

    #[inline(always)]
    fn flat(&self, put: &mut impl FnMut(u64)) {
        let used = match self {
            Ok(value) => {
                put(0);
                value.flat(put);
                T::FLAT
            }
            Err(error) => {
                put(1);
                error.flat(put);
                E::FLAT
            }
        };
        (1 + used..Self::FLAT).for_each(|_| put(0));
    }

    fn body(&self, body: &mut Body<'_>) -> Result<(), TooLong> {
        match self {
            Ok(value) => value.body(body),
            Err(error) => error.body(body),
        }
    }

    #[inline(always)]
    fn take(words: &mut impl Words, body: &mut Bytes<'a>) -> Result<Self, Malformed> {
        let (value, used) = match words.next() {
            0 => (Ok(T::take(words, body)?), T::FLAT),
            1 => (Err(E::take(words, body)?), E::FLAT),
            _ => return Err(Malformed),
        };
        skip(words, Self::FLAT - 1 - used);
        Ok(value)
    }
}

/// Tuples: their parts in order.
macro_rules! tuples {
    ($(($($name:ident)*))*) => { $(
        impl<'a, $($name: Wire<'a>),*> Wire<'a> for ($($name,)*) {
            const FLAT: usize = 0 $(+ $name::FLAT)*;

            #[inline(always)]
            #[allow(non_snake_case, unused_variables)]
            fn flat(&self, put: &mut impl FnMut(u64)) {
                let ($($name,)*) = self;
                $($name.flat(put);)*
            }

            #[inline(always)]
            #[allow(non_snake_case, unused_variables)]
            fn body(&self, body: &mut Body<'_>) -> Result<(), TooLong> {
                let ($($name,)*) = self;
                $($name.body(body)?;)*
                Ok(())
            }

            #[inline(always)]
            #[allow(non_snake_case, unused_variables)]
            fn take(words: &mut impl Words, body: &mut Bytes<'a>) -> Result<Self, Malformed> {
                $(let $name = $name::take(words, body)?;)*
                Ok(($($name,)*))
            }
        }
    )* };
}

tuples! {
    () (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H)
    (A B C D E F G H I) (A B C D E F G H I J) (A B C D E F G H I J K) (A B C D E F G H I J K L)
}
