//! What bytes make of a small screen.

use super::*;

extern crate std;
use std::string::String;
use std::vec::Vec;

type Small = Screen<4, 10>;

fn rows(screen: &Small) -> Vec<String> {
    let text = |row: &[Cell; 10]| row.iter().map(|cell| cell.character).collect::<String>();
    screen.cells.rows.iter().map(|row| String::from(text(row).trim_end())).collect()
}

fn shown(text: &str) -> (Vec<String>, Option<(usize, usize)>) {
    let mut screen = Small::new();
    screen.write(text.as_bytes());
    (rows(&screen), screen.cursor())
}

#[test]
fn text_wraps_and_scrolls() {
    assert_eq!(
        shown("one\r\ntwo\tx"),
        (["one", "two     x", "", ""].map(String::from).into(), Some((1, 9)))
    );
    assert_eq!(shown("0123456789").1, Some((0, 9)), "the next character begins the next row");
    assert_eq!(shown("0123456789a").0, ["0123456789", "a", "", ""]);
    assert_eq!(shown("\x1B[?7l0123456789ab").0[0], "012345678b", "without wrapping");
    assert_eq!(shown("1\r\n2\r\n3\r\n4\r\n5\x08!").0, ["2", "3", "4", "!"]);
    assert_eq!(shown("grün €").0[0], "grün €");
}

#[test]
fn the_cursor_goes_where_it_is_told() {
    assert_eq!(shown("\x1B[3;4Hx").0, ["", "", "   x", ""]);
    assert_eq!(shown("\x1B[99;99Hx\x1B[A\x1B[2Dy").0, ["", "", "       y", "         x"]);
    assert_eq!(shown("\x1B[2;2H\x1B7\x1B[H\x1B8z").0[1], " z");
    assert_eq!(shown("\x1B[?25l").1, None);
    assert_eq!(shown("\x1B[2d\x1B[5G.").0[1], "    .");
}

#[test]
fn rows_and_cells_are_erased_inserted_and_deleted() {
    let three = "aaa\r\nbbb\r\nccc\x1B[2;2H";
    let after = |what: &str| shown(&[three, what].concat()).0;
    assert_eq!(after("\x1B[J"), ["aaa", "b", "", ""]);
    assert_eq!(after("\x1B[1J"), ["", "  b", "ccc", ""]);
    assert_eq!(after("\x1B[2J"), ["", "", "", ""]);
    assert_eq!(after("\x1B[K"), ["aaa", "b", "ccc", ""]);
    assert_eq!(after("\x1B[L"), ["aaa", "", "bbb", "ccc"]);
    assert_eq!(after("\x1B[M"), ["aaa", "ccc", "", ""]);
    assert_eq!(after("\x1B[P"), ["aaa", "bb", "ccc", ""]);
    assert_eq!(after("\x1B[2@"), ["aaa", "b  bb", "ccc", ""]);
    assert_eq!(after("\x1B[X"), ["aaa", "b b", "ccc", ""]);
    assert_eq!(after("\x1B[2;3r\x1B[3;1H\nddd"), ["aaa", "ccc", "ddd", ""]);
    assert_eq!(after("\x1B[H\x1BMnew"), ["new", "aaa", "bbb", "ccc"]);
}

#[test]
fn colours_are_a_pcs() {
    let mut screen = Small::new();
    screen.write(b"\x1B[1;31;44ma\x1B[0;7mb\x1B[38;5;9;32mc\x1B[md");
    let colours = |at: usize| screen.cells.rows[0][at].colours;
    assert_eq!(colours(0), Colours { front: 12, back: 1 });
    assert_eq!(colours(1), Colours { front: 0, back: 7 });
    assert_eq!(colours(2), Colours { front: 0, back: 2 });
    assert_eq!(colours(3), Colours::PLAIN);
}

#[test]
fn it_answers_where_the_cursor_is() {
    let mut screen = Small::new();
    screen.write(b"\x1B[999;999H\x1B[6n");
    let answer: Vec<u8> = core::iter::from_fn(|| screen.answer()).collect();
    assert_eq!(answer, b"\x1B[4;10R");
    for _ in 0..100 {
        screen.write(b"\x1B[6n");
    }
    assert_eq!(core::iter::from_fn(|| screen.answer()).count(), 9 * 7, "whole answers");
}

#[test]
fn rows_that_changed_are_said_once() {
    let mut screen = Small::new();
    let changed = |screen: &mut Small| {
        let mut rows = Vec::new();
        screen.changed(|row, _| rows.push(row));
        rows
    };
    assert_eq!(changed(&mut screen), [0, 1, 2, 3]);
    screen.write(b"\r\nx");
    assert_eq!(changed(&mut screen), [1]);
    assert!(changed(&mut screen).is_empty());
}

/// Nothing that a program writes can leave the screen.
#[test]
fn any_bytes_are_shown() {
    let mut state = 1u64;
    let mut screen = Small::new();
    let some = b"\x1B\x1B\x1B[[[[;;0123456789ABCDEFGHJKLMPSTXdefhlmnrsu`@?78c\r\n\t\x08ab\xC3\xBC";
    for _ in 0..200_000 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let byte = some[(state >> 33) as usize % some.len()];
        screen.write(&[byte]);
        if let Some((row, column)) = screen.cursor() {
            assert!(row < 4 && column < 10);
        }
    }
}
