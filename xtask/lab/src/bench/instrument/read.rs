//! Reads what the instrument wrote and what the measured program printed.

use anyhow::{Context, Result, bail, ensure};

use super::{Measured, Sample, Series, Stretch, Stretches, count};

/// Brings the program's rows and the instrument's samples together.
pub(super) fn join(console: &str, counted: &str) -> Result<Measured> {
    let mut measured = Measured { stretches: longest_of(counted)?.0, ..Measured::default() };
    let mut samples = Vec::new();
    for line in counted.lines() {
        match line.split_once(' ') {
            Some(("sample", rest)) => samples.push(pairs(rest)),
            // A thread of several processors may have gone to another one.
            Some(("restart" | "stray", _)) if counted.contains(" cpu=") => {}
            Some(("restart", at)) => bail!(
                "the instrument saw two begin marks in a row in sample {at}; the measured program is wrong"
            ),
            Some(("stray", at)) => bail!(
                "the instrument saw an end mark without its begin after sample {at}; the measured program is wrong"
            ),
            Some(("i" | "m", _)) => measured.trace.push(line.to_owned()),
            _ => {}
        }
    }
    measured.samples.clone_from(&samples);
    for line in console.lines() {
        if let Some(note) = line.strip_prefix("note ") {
            measured.notes.push(note.to_owned());
        }
        if let Some(said) = line.strip_prefix("baton: ") {
            measured.log.push(said.to_owned());
        }
        if let Some(call) = line.strip_prefix("call ") {
            measured.calls.push(call.to_owned());
        }
        if let Some(row) = line.strip_prefix("row ") {
            measured.series.push(series(row, &samples)?);
        }
    }
    Ok(measured)
}

/// The counters of a line, `N NAME=NUMBER ...`.
#[must_use]
pub fn pairs(line: &str) -> Sample {
    let words = line.split(' ').skip(1);
    let number =
        |word: &str| word.split_once('=').and_then(|(k, v)| Some((k.to_owned(), v.parse().ok()?)));
    words.filter_map(number).collect()
}

fn series(row: &str, samples: &[Sample]) -> Result<Series> {
    let name = row.split(' ').next().unwrap_or_default().to_owned();
    let mut parameters = pairs(row);
    let mut take = |key: &str| {
        parameters.remove(key).with_context(|| format!("the row `{row}` has no {key}="))
    };
    let (first, count, stride) = (take("first")?, take("count")?, take("stride")?.max(1));
    let picked: Option<Vec<Sample>> =
        (0..count).map(|index| samples.get((first + index * stride) as usize).cloned()).collect();
    let samples = picked.with_context(|| {
        format!("the row `{row}` names samples that the instrument has not seen")
    })?;
    Ok(Series { name, parameters, first, stride, samples })
}

/// `HEX N`
fn place(text: &str) -> Option<(u64, u64)> {
    let (address, instructions) = text.split_once(' ')?;
    Some((u64::from_str_radix(address, 16).ok()?, instructions.parse().ok()?))
}

/// The longest stretches of several machines that wrote into one file.
///
/// # Errors
/// When the file is not the instrument's.
pub fn longest_of(counted: &str) -> Result<(Stretches, usize)> {
    let (mut longest, mut now, mut machines) = (Stretches::default(), Stretches::default(), 0);
    let (mut excused, mut is_late, mut is_first) = (0, false, true);
    for line in counted.lines() {
        match line.split_once(' ') {
            Some(("excused", rest)) => {
                excused = excused.max(rest.parse()?);
                is_first |= now.stands.is_some();
                longest.keep(std::mem::take(&mut now));
            }
            Some(("processor", _)) => is_first = false,
            Some(("longest", rest)) => {
                let stretch = stretch(rest)?;
                is_late = false;
                if is_first {
                    now.off = stretch
                } else {
                    now.elsewhere = stretch
                }
                machines += usize::from(is_first);
            }
            Some(("late", rest)) => {
                is_late = true;
                // Handlers wait for the first processor only.
                now.late = if is_first { stretch(rest)? } else { Stretch::default() };
            }
            Some(("place", rest)) => {
                let of = match (&mut now.stands, is_late, is_first) {
                    (Some(stands), ..) => stands,
                    (None, true, _) => &mut now.late,
                    (None, false, true) => &mut now.off,
                    (None, false, false) => &mut now.elsewhere,
                };
                of.places.extend(place(rest));
            }
            // The last one of a machine with several.
            Some(("stands", rest)) => now.stands = Some(stretch(rest)?),
            _ => {}
        }
    }
    longest.keep(now);
    longest.off.checker = excused;
    Ok((longest, machines))
}

/// `N from=HEX to=HEX since=N ...`
fn stretch(text: &str) -> Result<Stretch> {
    let mut words = text.split(' ');
    let instructions = words
        .next()
        .and_then(|n| n.parse().ok())
        .context("the instrument's last line has no number")?;
    let mut stretch = Stretch { instructions, ..Stretch::default() };
    for (key, value) in words.filter_map(|word| word.split_once('=')) {
        match key {
            "from" => stretch.from = u64::from_str_radix(value, 16)?,
            "to" => stretch.to = u64::from_str_radix(value, 16)?,
            "since" => stretch.since = value.parse()?,
            _ => {}
        }
    }
    Ok(stretch)
}

/// Compares the known loops, lines and pages with what was counted; without any,
/// there is nothing to believe either.
pub(super) fn check(measured: &Measured) -> Result<()> {
    let known = measured.series.iter().filter(|series| series.name.starts_with("check/"));
    let mut checked = 0;
    for series in known {
        for (what, counters) in
            [("instructions", "user"), ("lines", "udlines"), ("pages", "udpages")]
        {
            let Some(expected) = series.parameters.get(what) else { continue };
            let first = series.samples.first();
            // Several processors interrupt each other; what the machine stores then is counted, too.
            if first.is_some_and(|it| it.contains_key("cpu") && count(it, "kernel") != 0) {
                continue;
            }
            let seen = first.map_or(0, |sample| count(sample, counters));
            ensure!(
                seen == *expected,
                "the instrument counts {seen} {what} where {} has exactly {expected}; nothing is reported. \
                 Is this another version of QEMU than 7.2?",
                series.name
            );
            checked += 1;
        }
    }
    ensure!(
        checked > 0 || measured.series.iter().all(|s| !s.name.starts_with("ipc/")),
        "the measured program has no known loops to check the instrument with"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSOLE: &str = "baton: boot\nrow check/loop instructions=4 first=0 count=1 stride=1\n\
        row ipc/x words=63 first=1 count=2 stride=2\nnote hello there\nbench done\n";

    fn counted(user: u64) -> String {
        format!(
            "sample 0 user={user} kernel=0\nsample 1 user=1 kernel=40\nsample 2 user=1 kernel=50\n\
             sample 3 user=1 kernel=39 syscall=1\nlongest 77 from=ffffffff80000000 to=10 since=5 total=9 restarts=0\n"
        )
    }

    #[test]
    fn rows_and_samples_are_joined() {
        let measured = join(CONSOLE, &counted(4)).unwrap();
        check(&measured).unwrap();
        let series = measured.find("ipc/x", &[("words", 63)]).unwrap();
        let (number, best) = series.best().unwrap();
        assert_eq!(
            (number, count(best, "kernel"), count(best, "syscall"), count(best, "iret")),
            (3, 39, 1, 0)
        );
        assert_eq!(
            (measured.notes, measured.log),
            (vec!["hello there".into()], vec!["boot".into()])
        );
        let stretch = &measured.stretches.off;
        assert_eq!(
            (stretch.instructions, stretch.since, stretch.from, stretch.to),
            (77, 5, 0xFFFF_FFFF_8000_0000, 0x10)
        );
    }

    #[test]
    fn an_instrument_that_is_off_by_one_is_refused() {
        for wrong in [3, 5] {
            let error = check(&join(CONSOLE, &counted(wrong)).unwrap()).unwrap_err();
            assert!(error.to_string().contains("exactly 4"), "{error}");
        }
    }

    #[test]
    fn the_longest_of_several_machines_is_found() {
        let text = "excused 0\nlongest 5 from=1 to=2 since=3 total=9\nplace 10 5\nexcused 0\nlongest 9 from=1 to=2 since=3 total=9\n\
            place 20 4\nplace 30 5\nlate 30 from=1 to=2 since=3 total=9\nplace 50 30\n\
            excused 0\nlongest 7 from=1 to=2 since=3 total=9\nplace 40 7\nlate 20 from=1 to=2 since=3 total=9\n";
        let (longest, machines) = longest_of(text).unwrap();
        assert_eq!((longest.off.instructions, longest.late.instructions, machines), (9, 30, 3));
        assert_eq!(longest.off.places, [(0x20, 4), (0x30, 5)]);
        assert_eq!(longest.late.places, [(0x50, 30)]);
    }

    #[test]
    fn other_processors_have_stretches_of_their_own() {
        let at = "from=1 to=2 since=3 total=9";
        let one = |off: u64| {
            format!("excused 0\nlongest {off} {at}\nplace 10 {off}\nlate 8 {at}\nplace 20 8\n")
        };
        let machine = |off: u64, there: u64| {
            let stands = format!("stands {off} {at}\nplace 30 {off}\n");
            format!("{}processor 1\n{}processor 2\n{}{stands}", one(off), one(there), one(1))
        };
        let (longest, machines) =
            longest_of(&(machine(5, 90) + &machine(7, 60) + &one(6))).unwrap();
        assert_eq!((longest.off.instructions, longest.elsewhere.instructions), (7, 90));
        assert_eq!((longest.late.instructions, machines), (8, 3));
        let stands = longest.stands.map(|stands| (stands.instructions, stands.places));
        assert_eq!(stands, Some((7, vec![(0x30, 7)])));
        assert_eq!((longest.off.places, longest.elsewhere.places), (vec![(16, 7)], vec![(16, 90)]));
        assert_eq!(longest_of(&one(6)).unwrap().0.stands, None);
    }

    #[test]
    fn a_stray_mark_and_a_missing_sample_are_refused() {
        assert!(join(CONSOLE, "stray 0\n").is_err());
        assert!(join(CONSOLE, "sample 0 user=4\n").is_err());
    }
}
