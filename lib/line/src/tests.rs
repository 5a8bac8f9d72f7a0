//! The editor at a terminal of one row and more, which the tests play.

use super::*;

extern crate std;
use std::string::String;
use std::vec::Vec;

/// Types `input`; returns the complete lines and the echo.
fn typed(input: &[u8]) -> (Vec<Vec<u8>>, Vec<u8>) {
    typed_at(&mut Editor::new(), input)
}

fn typed_at(editor: &mut Editor, input: &[u8]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let (mut lines, mut shown) = (Vec::new(), Vec::new());
    for byte in input {
        if editor.put(*byte, |text| shown.extend_from_slice(text)) == Event::Line {
            lines.push(editor.line().to_vec());
            editor.clear();
        }
    }
    (lines, shown)
}

/// What a terminal shows after `echo`: its rows, and the column of the cursor.
fn screen(echo: &[u8]) -> (Vec<String>, usize) {
    let (mut rows, mut column) = (std::vec![Vec::new()], 0);
    let mut bytes = echo.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let row: &mut Vec<u8> = rows.last_mut().unwrap();
        match byte {
            b'\r' => column = 0,
            b'\n' => rows.push(Vec::new()),
            8 => column -= 1,
            7 => {}
            0x1B => {
                assert_eq!(bytes.next(), Some(b'['));
                let mut number = 0;
                while let Some(digit) = bytes.next_if(u8::is_ascii_digit) {
                    number = number * 10 + usize::from(digit - b'0');
                }
                match bytes.next() {
                    Some(b'K') => row.truncate(column),
                    Some(b'D') => column -= number,
                    Some(b'H') => column = 0,
                    Some(b'J') => rows = std::vec![Vec::new()],
                    other => panic!("ESC [ {number} {other:?}"),
                }
            }
            _ => {
                row.resize(row.len().max(column + 1), b' ');
                row[column] = byte;
                column += 1;
            }
        }
    }
    let text = |row: &Vec<u8>| String::from(String::from_utf8_lossy(row).trim_end());
    (rows.iter().map(text).collect(), column)
}

#[test]
fn lines_end_with_any_line_end() {
    assert_eq!(typed(b"one\rtwo\nthree\r\nfour\r").0, [&b"one"[..], b"two", b"three", b"four"]);
    assert_eq!(typed(b"\r\r").0, [b"", b""]);
}

#[test]
fn erasing() {
    assert_eq!(typed(b"ab\x7Fc\r").0, [b"ac"]);
    assert_eq!(typed(b"\x08\x08x\r").0, [b"x"]);
    assert_eq!(typed(b"kill this\x15word\r").0, [b"word"]);
    assert_eq!(typed(b"two words  \x17x\r").0, [b"two x"]);
    assert_eq!(typed(b"a\x08").1, b"a\x08 \x08");
}

#[test]
fn a_full_line_rings() {
    let (lines, shown) = typed(&[[b'a'; LINE_BYTES + 3].as_slice(), b"\r"].concat());
    assert_eq!(lines[0].len(), LINE_BYTES);
    assert_eq!(shown.iter().filter(|byte| **byte == 7).count(), 3);
}

#[test]
fn the_cursor_moves_and_characters_go_where_it_is() {
    assert_eq!(typed(b"hlo\x1B[D\x1B[De\x1B[Cl\x1B[4~!\r").0, [b"hello!"]);
    assert_eq!(typed(b"world\x01my \x05!\x1BOH\x1B[3~\x1B[3~\x1B[3~\r").0, [b"world!"]);
    assert_eq!(typed(b"abcdef\x02\x02\x0B\r").0, [b"abcd"]);
    assert_eq!(typed(b"ab\x1B[1;5Dc\x1B[24~\r").0, [b"acb"]);
    assert_eq!(typed(b"ab\x04\x1B[Dx\x04\r").0, [b"ax"]);
    let mut editor = Editor::new();
    editor.set_prompt(b"> ");
    let (_, shown) = typed_at(&mut editor, b"hlo\x1B[D\x1B[De");
    assert_eq!(screen(&shown), (std::vec!["> helo".into()], 4));
}

#[test]
fn earlier_lines_come_back() {
    assert_eq!(typed(b"one\rtwo\r\x1B[A\x1B[A\r").0[2], b"one");
    assert_eq!(typed(b"one\rtwo\r\x10\x10\x10\x0E!\r").0[2], b"two!");
    assert_eq!(typed(b"one\rdraft\x1B[A\x1B[B\x1B[Bs\r").0[1], b"drafts");
    assert_eq!(typed(b"one\r\r\rone\rx\r\x10\x10\r").0.last().unwrap(), b"one");
    let mut input = Vec::new();
    (0..40).for_each(|n| input.extend(std::format!("line {n}\r").bytes()));
    input.extend([0x10; 30]);
    input.push(b'\r');
    assert_eq!(typed(&input).0.last().unwrap(), b"line 24");
}

#[test]
fn words_are_completed_where_they_can_stand() {
    let complete = |input: &[u8]| {
        let mut editor = Editor::new();
        editor.set_words(b"help halt start\nserial sergeant pager");
        let (lines, shown) = typed_at(&mut editor, input);
        (lines, screen(&shown))
    };
    assert_eq!(complete(b"st\tpa\t\r").0, [b"start pager "]);
    assert_eq!(complete(b"st\tse\tr\r").0, [b"start serr"]);
    let (_, (rows, column)) = complete(b"start se\t\t");
    assert_eq!(rows, ["start ser", "serial  sergeant", "start ser"]);
    assert_eq!(column, 9);
    assert_eq!(complete(b"pa\t\r").0, [b"pa"]);
    assert_eq!(complete(b"  h\t\r").0, [b"  h"]);
}

#[test]
fn a_long_line_stays_in_its_row() {
    let mut editor = Editor::new();
    editor.set_prompt(b"baton> ");
    let (_, mut shown) = typed_at(&mut editor, &[b'a'; 100]);
    let (rows, column) = screen(&shown);
    assert!(rows.len() == 1 && rows[0].len() <= COLUMNS && rows[0].starts_with("baton> aaa"));
    assert_eq!(column, COLUMNS - 1);
    shown.extend(typed_at(&mut editor, b"\x01b").1);
    let (rows, column) = screen(&shown);
    assert!(rows[0].starts_with("baton> baaa") && rows[0].len() == COLUMNS, "{rows:?}");
    assert_eq!(column, 8);
    assert_eq!(typed_at(&mut editor, b"\r").0[0].len(), 101);
}

#[test]
fn others_print_between() {
    let mut editor = Editor::new();
    editor.set_prompt(b"baton> ");
    let mut shown = Vec::new();
    editor.show(|text| shown.extend_from_slice(text));
    shown.extend(typed_at(&mut editor, b"run hel\x02").1);
    editor.hide(|text| shown.extend_from_slice(text));
    shown.extend(b"somebody: hello\r\n");
    editor.show(|text| shown.extend_from_slice(text));
    assert_eq!(screen(&shown), (std::vec!["somebody: hello".into(), "baton> run hel".into()], 13));
}

#[test]
fn a_fresh_screen_and_a_fresh_line() {
    let mut editor = Editor::new();
    editor.set_prompt(b"> ");
    let (lines, shown) = typed_at(&mut editor, b"abc\x0Cd\x03ef\x0C\r");
    assert_eq!(lines, [b"ef"]);
    assert_eq!(screen(&shown).0, ["> ef", ""]);
}

#[test]
fn any_bytes_leave_a_line_that_can_be_read() {
    let mut seed = 1_u32;
    let mut editor = Editor::new();
    editor.set_prompt(b"p");
    editor.set_words(b"aa ab\nzz");
    for _ in 0..200_000 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let common = b"\x1B[ABCD~3 \taz\r\x01\x05\x17\x0B";
        let byte = match seed >> 30 {
            0 => (seed >> 16) as u8,
            _ => common[(seed >> 16) as usize % common.len()],
        };
        if editor.put(byte, |_| ()) == Event::Line {
            assert!(editor.line().iter().all(|byte| matches!(byte, b' '..=0x7E)));
            editor.clear();
        }
    }
}

/// A terminal and all that was sent to it.
struct Played {
    terminal: Terminal,
    sent: Vec<u8>,
    lines: Vec<Vec<u8>>,
}

impl Played {
    fn new() -> Self {
        Self { terminal: Terminal::new(), sent: Vec::new(), lines: Vec::new() }
    }

    fn print(&mut self, text: &str) -> &mut Self {
        self.terminal.print(text.as_bytes(), |echo| self.sent.extend_from_slice(echo));
        self
    }

    fn ask(&mut self) -> &mut Self {
        self.terminal.ask(|echo| self.sent.extend_from_slice(echo));
        self
    }

    fn type_in(&mut self, text: &[u8]) -> &mut Self {
        for byte in text {
            let event = self.terminal.put(*byte, |echo| self.sent.extend_from_slice(echo));
            if event == Event::Line {
                self.lines.push(self.terminal.line().to_vec());
                self.terminal.clear();
            }
        }
        self
    }

    fn rows(&self) -> Vec<String> {
        screen(&self.sent).0
    }
}

#[test]
fn the_prompt_comes_back_after_others_have_printed() {
    let mut played = Played::new();
    played.print("hello\nbaton> ").ask().type_in(b"ps").print("somebody: 1\n");
    assert_eq!(played.rows(), ["hello", "somebody: 1", "baton> ps"]);
    // A line in pieces is left whole.
    played.print("some").print("body: 2\n").type_in(b" x\r");
    assert_eq!(played.rows(), ["hello", "somebody: 1", "somebody: 2", "baton> ps x", ""]);
    assert_eq!(played.lines, [b"ps x"]);
}

#[test]
fn an_unfinished_line_of_others_gets_its_row_when_a_key_is_pressed() {
    let mut played = Played::new();
    played.print("baton> ").ask().print("part").type_in(b"a");
    assert_eq!(played.rows(), ["part", "baton> a"]);
}

#[test]
fn typing_ahead_is_kept_and_shown_with_the_prompt() {
    let mut played = Played::new();
    played.print("working\n").type_in(b"he").print("still\n").print("baton> ").ask();
    assert_eq!(played.rows(), ["working", "still", "baton> he"]);
    played.type_in(b"lp\r");
    assert_eq!(played.lines, [b"help"]);
    // Typed between the prompt and the question, as programs and quick people do.
    let mut played = Played::new();
    played.print("baton> ").type_in(b"ha").ask().type_in(b"lt\x1B[D\x7Fl\r");
    assert_eq!(played.rows(), ["baton> halt", ""]);
    assert_eq!(played.lines, [b"halt"]);
}

#[test]
fn nothing_but_the_text_is_sent_while_nobody_types() {
    let mut played = Played::new();
    played.print("a\nb").print("c\nbaton> ").ask();
    assert_eq!(played.sent, b"a\r\nbc\r\nbaton> ");
    played.type_in(b"x\r").print("d\n");
    assert_eq!(played.sent, b"a\r\nbc\r\nbaton> x\r\nd\r\n");
}

#[test]
fn what_cannot_be_a_prompt_is_left_alone() {
    let mut played = Played::new();
    played.print("\x1B[1K> ").ask().type_in(b"ab\x1B[Dc");
    assert_eq!(screen(&played.sent[6..]).0, ["", "acb"]);
    let mut played = Played::new();
    played.print(&"x".repeat(60)).ask().type_in(b"b\x01a");
    assert_eq!(played.rows()[1], "ab");
}

#[test]
fn what_was_typed_before_somebody_wants_no_lines_is_given_up() {
    let mut terminal = Terminal::new();
    let mut sent: Vec<u8> = Vec::new();
    for byte in *b"ecx\x7F" {
        terminal.put(byte, |bytes| sent.extend(bytes));
    }
    let mut given = Vec::new();
    terminal.give_up(|byte| given.push(byte));
    assert_eq!((given.as_slice(), terminal.line()), (&b"ec"[..], &b""[..]));
    // What others print is left alone from now on: there is no line to be shown below it.
    let before = sent.len();
    terminal.print(b"login\n", |bytes| sent.extend(bytes));
    assert_eq!(&sent[before..], b"login\r\n");
}
