# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_baton_global_optspecs
    string join \n h/help
end

function __fish_baton_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_baton_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_baton_using_subcommand
    set -l cmd (__fish_baton_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c baton -n "__fish_baton_needs_command" -s h -l help -d 'Print help'
complete -c baton -n "__fish_baton_needs_command" -f -a "run" -d 'Build what a system needs and start it in the emulator'
complete -c baton -n "__fish_baton_needs_command" -f -a "image" -d 'Write a bootable CD image'
complete -c baton -n "__fish_baton_needs_command" -f -a "debug" -d 'Start a system under gdb'
complete -c baton -n "__fish_baton_needs_command" -f -a "explain" -d 'Say which functions and lines a console\'s fault reports mean'
complete -c baton -n "__fish_baton_needs_command" -f -a "check" -d 'Let the compiler check everything, for people and for editors'
complete -c baton -n "__fish_baton_needs_command" -f -a "build" -d 'Build the kernel and all programs, or what is named'
complete -c baton -n "__fish_baton_needs_command" -f -a "test" -d 'Run the tests: on the host, in the emulator, whole systems'
complete -c baton -n "__fish_baton_needs_command" -f -a "bench" -d 'Measure: suites, reports, the gate, instruction traces'
complete -c baton -n "__fish_baton_needs_command" -f -a "linux" -d 'Linux programs: compare with Linux, check, build the file system'
complete -c baton -n "__fish_baton_needs_command" -f -a "fuzz" -d 'Hostile tasks against the kernel; servers killed; parsers fuzzed'
complete -c baton -n "__fish_baton_needs_command" -f -a "new" -d 'Begin a program of your own, with a system that starts it'
complete -c baton -n "__fish_baton_needs_command" -f -a "doc" -d 'Write the documents as a book, with pages on all libraries'
complete -c baton -n "__fish_baton_needs_command" -f -a "sdk" -d 'Write a folder in which systems are built without this tree'
complete -c baton -n "__fish_baton_needs_command" -f -a "lint" -d 'Check the house rules: format, clippy, unsafe, lengths, help'
complete -c baton -n "__fish_baton_needs_command" -f -a "idl" -d 'Show the stubs or the messages of interfaces in WIT'
complete -c baton -n "__fish_baton_needs_command" -f -a "completion" -d 'Print the completion of a shell: eval "$(./baton completion bash)"'
complete -c baton -n "__fish_baton_using_subcommand run" -l root -d 'Root task instead of the system\'s: any X.2 root task (file, or name of a program)' -r
complete -c baton -n "__fish_baton_using_subcommand run" -l sigma0 -d 'σ0 instead of the system\'s (file, or name of a program)' -r
complete -c baton -n "__fish_baton_using_subcommand run" -l module -d 'Raw file for the root task (repeatable)' -r
complete -c baton -n "__fish_baton_using_subcommand run" -l program -d 'Program for the root task to start, flattened (repeatable)' -r
complete -c baton -n "__fish_baton_using_subcommand run" -l kernel -d 'Kernel instead of the tree\'s' -r -F
complete -c baton -n "__fish_baton_using_subcommand run" -l exec -d 'Run one command in the system\'s shell and end with its status' -r
complete -c baton -n "__fish_baton_using_subcommand run" -l initramfs -d 'First file system instead of the system\'s (a cpio archive, newc)' -r -F
complete -c baton -n "__fish_baton_using_subcommand run" -l share -d 'Directory to copy to /share of the first file system' -r -F
complete -c baton -n "__fish_baton_using_subcommand run" -l memory -d 'Memory of the machine [default: what the system\'s description says, or 512]' -r
complete -c baton -n "__fish_baton_using_subcommand run" -l cpus -d 'Processors of the machine [default: what the system\'s description says, or as many as this computer has, 4 at most; 1 with --icount or --test and for `debug`]' -r
complete -c baton -n "__fish_baton_using_subcommand run" -l cpu -d 'Processor of the machine, as the emulator names it (`max,-xsave`)' -r
complete -c baton -n "__fish_baton_using_subcommand run" -l device -d 'A further device of the machine, as the emulator names it (`edu`; repeatable)' -r
complete -c baton -n "__fish_baton_using_subcommand run" -l kernel-arg -d 'Word for the kernel\'s command line (repeatable)' -r
complete -c baton -n "__fish_baton_using_subcommand run" -l limit -d 'Time limit with --test (60) or --exec (none)' -r
complete -c baton -n "__fish_baton_using_subcommand run" -l quick -d 'Compile programs to try them, not to measure: seconds, for slower code'
complete -c baton -n "__fish_baton_using_subcommand run" -l icount -d 'Count instructions: the time stamp counter ticks once per instruction'
complete -c baton -n "__fish_baton_using_subcommand run" -l test -d 'No interaction: print the console and end with the guest\'s verdict'
complete -c baton -n "__fish_baton_using_subcommand run" -s h -l help -d 'Print help'
complete -c baton -n "__fish_baton_using_subcommand image" -l root -d 'Root task instead of the system\'s: any X.2 root task (file, or name of a program)' -r
complete -c baton -n "__fish_baton_using_subcommand image" -l sigma0 -d 'σ0 instead of the system\'s (file, or name of a program)' -r
complete -c baton -n "__fish_baton_using_subcommand image" -l module -d 'Raw file for the root task (repeatable)' -r
complete -c baton -n "__fish_baton_using_subcommand image" -l program -d 'Program for the root task to start, flattened (repeatable)' -r
complete -c baton -n "__fish_baton_using_subcommand image" -l kernel -d 'Kernel instead of the tree\'s' -r -F
complete -c baton -n "__fish_baton_using_subcommand image" -l exec -d 'Run one command in the system\'s shell and end with its status' -r
complete -c baton -n "__fish_baton_using_subcommand image" -l initramfs -d 'First file system instead of the system\'s (a cpio archive, newc)' -r -F
complete -c baton -n "__fish_baton_using_subcommand image" -l share -d 'Directory to copy to /share of the first file system' -r -F
complete -c baton -n "__fish_baton_using_subcommand image" -l kernel-arg -d 'Word for the kernel\'s command line (repeatable)' -r
complete -c baton -n "__fish_baton_using_subcommand image" -s o -l output -d 'Where the CD image goes' -r -F
complete -c baton -n "__fish_baton_using_subcommand image" -l quick -d 'Compile programs to try them, not to measure: seconds, for slower code'
complete -c baton -n "__fish_baton_using_subcommand image" -s h -l help -d 'Print help'
complete -c baton -n "__fish_baton_using_subcommand debug" -l root -d 'Root task instead of the system\'s: any X.2 root task (file, or name of a program)' -r
complete -c baton -n "__fish_baton_using_subcommand debug" -l sigma0 -d 'σ0 instead of the system\'s (file, or name of a program)' -r
complete -c baton -n "__fish_baton_using_subcommand debug" -l module -d 'Raw file for the root task (repeatable)' -r
complete -c baton -n "__fish_baton_using_subcommand debug" -l program -d 'Program for the root task to start, flattened (repeatable)' -r
complete -c baton -n "__fish_baton_using_subcommand debug" -l kernel -d 'Kernel instead of the tree\'s' -r -F
complete -c baton -n "__fish_baton_using_subcommand debug" -l exec -d 'Run one command in the system\'s shell and end with its status' -r
complete -c baton -n "__fish_baton_using_subcommand debug" -l initramfs -d 'First file system instead of the system\'s (a cpio archive, newc)' -r -F
complete -c baton -n "__fish_baton_using_subcommand debug" -l share -d 'Directory to copy to /share of the first file system' -r -F
complete -c baton -n "__fish_baton_using_subcommand debug" -l memory -d 'Memory of the machine [default: what the system\'s description says, or 512]' -r
complete -c baton -n "__fish_baton_using_subcommand debug" -l cpus -d 'Processors of the machine [default: what the system\'s description says, or as many as this computer has, 4 at most; 1 with --icount or --test and for `debug`]' -r
complete -c baton -n "__fish_baton_using_subcommand debug" -l cpu -d 'Processor of the machine, as the emulator names it (`max,-xsave`)' -r
complete -c baton -n "__fish_baton_using_subcommand debug" -l device -d 'A further device of the machine, as the emulator names it (`edu`; repeatable)' -r
complete -c baton -n "__fish_baton_using_subcommand debug" -l kernel-arg -d 'Word for the kernel\'s command line (repeatable)' -r
complete -c baton -n "__fish_baton_using_subcommand debug" -l quick -d 'Compile programs to try them, not to measure: seconds, for slower code'
complete -c baton -n "__fish_baton_using_subcommand debug" -l icount -d 'Count instructions: the time stamp counter ticks once per instruction'
complete -c baton -n "__fish_baton_using_subcommand debug" -l gdb -d 'Start gdb in this terminal; the console\'s output goes to a file'
complete -c baton -n "__fish_baton_using_subcommand debug" -s h -l help -d 'Print help'
complete -c baton -n "__fish_baton_using_subcommand explain" -l system -d 'System that was booted; without it, the one that has the tasks reported' -r
complete -c baton -n "__fish_baton_using_subcommand explain" -l quick -d 'Its programs were compiled with --quick'
complete -c baton -n "__fish_baton_using_subcommand explain" -s h -l help -d 'Print help'
complete -c baton -n "__fish_baton_using_subcommand check" -l json -d 'Cargo\'s own messages, as editors read them (.vscode/settings.json)'
complete -c baton -n "__fish_baton_using_subcommand check" -s h -l help -d 'Print help'
complete -c baton -n "__fish_baton_using_subcommand build" -s h -l help -d 'Print help'
complete -c baton -n "__fish_baton_using_subcommand test" -l ring -d 'Only this ring (repeatable)' -r -f -a "host\t'On the host: pure logic, models, property tests'
emulator\t'In the emulator: kernel and user level together'
system\t'Whole systems: image, input, expected transcript'"
complete -c baton -n "__fish_baton_using_subcommand test" -l show -d 'Show the console of every run in the emulator'
complete -c baton -n "__fish_baton_using_subcommand test" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c baton -n "__fish_baton_using_subcommand bench" -l trace -d 'List the instructions of one row: short-ipc, string, page-fault, interrupt, or a row\'s name' -r
complete -c baton -n "__fish_baton_using_subcommand bench" -l record -d 'Add this commit\'s figures to bench/history.jsonl'
complete -c baton -n "__fish_baton_using_subcommand bench" -l gate -d 'Measure only the gate set, against bench/gate.toml'
complete -c baton -n "__fish_baton_using_subcommand bench" -l accept -d 'Make today\'s figures the gate'
complete -c baton -n "__fish_baton_using_subcommand bench" -s h -l help -d 'Print help'
complete -c baton -n "__fish_baton_using_subcommand linux; and not __fish_seen_subcommand_from compare judge check archive" -s h -l help -d 'Print help'
complete -c baton -n "__fish_baton_using_subcommand linux; and not __fish_seen_subcommand_from compare judge check archive" -f -a "compare" -d 'Run the same programs on Linux and on Baton and compare'
complete -c baton -n "__fish_baton_using_subcommand linux; and not __fish_seen_subcommand_from compare judge check archive" -f -a "judge" -d 'Run suites that others wrote on Linux and on Baton and compare'
complete -c baton -n "__fish_baton_using_subcommand linux; and not __fish_seen_subcommand_from compare judge check archive" -f -a "check" -d 'Say which system calls a program may make that are not supported'
complete -c baton -n "__fish_baton_using_subcommand linux; and not __fish_seen_subcommand_from compare judge check archive" -f -a "archive" -d 'Build the first file system'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from compare" -l only -d 'Run on this system alone and print what comes out' -r -f -a "linux\t'Debian\'s kernel'
baton\t'This tree\'s'"
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from compare" -l cpus -d 'Processors of both machines; with several, the cases that are for several run, too' -r
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from compare" -l without -d 'Technique to switch off, by its name in kernel/src/techniques.rs (repeatable)' -r
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from compare" -l short -d 'Only the cases of the short run'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from compare" -l fresh -d 'Run Linux again, whatever is remembered'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from compare" -l show -d 'Show the consoles'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from compare" -l list -d 'Name the cases and stop'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from compare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from judge" -l exact -d 'Only this trial; several may be said' -r
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from judge" -l source -d 'Where the suite\'s built source is, for suites that Debian does not have' -r -F
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from judge" -l shard -d 'Only one part of the trials, as 2/5: the second of five' -r
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from judge" -l only -d 'Run on this system alone' -r -f -a "linux\t'Debian\'s kernel'
baton\t'This tree\'s'"
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from judge" -l seconds -d 'Seconds that each stressor of stress-ng works' -r
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from judge" -l fresh -d 'Run Linux again, whatever is remembered'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from judge" -l baton-first -d 'Ask Linux only about what did not pass on Baton'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from judge" -l resume -d 'Take results that this very build of Baton has given already'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from judge" -l accept -d 'Write the differences to the list of known ones'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from judge" -l show -d 'Show the consoles'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from judge" -l list -d 'Name the trials and stop'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from judge" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from check" -l trace -d 'Run it here and see which calls it makes (needs strace)'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from check" -l all -d 'Name the supported calls, too'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from archive" -l share -d 'Directory to copy to /share' -r -F
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from archive" -s o -l output -d 'Where it goes' -r -F
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from archive" -l test -d 'With what the tests need'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from archive" -l list -d 'Name what is in it'
complete -c baton -n "__fish_baton_using_subcommand linux; and __fish_seen_subcommand_from archive" -s h -l help -d 'Print help'
complete -c baton -n "__fish_baton_using_subcommand fuzz" -l calls -d 'Calls to make' -r
complete -c baton -n "__fish_baton_using_subcommand fuzz" -l seed -d 'Where everything random begins' -r
complete -c baton -n "__fish_baton_using_subcommand fuzz" -l minutes -d 'Go on with further seeds for so long, whatever --calls says' -r
complete -c baton -n "__fish_baton_using_subcommand fuzz" -l check-every -d 'Calls between two runs of the kernel\'s checker' -r
complete -c baton -n "__fish_baton_using_subcommand fuzz" -l kill -d 'Instead: kill servers of a busy system so often, at moments that follow from --seed' -r
complete -c baton -n "__fish_baton_using_subcommand fuzz" -l parsers -d 'Instead: the parsers of outside input under libFuzzer, so many seconds each' -r
complete -c baton -n "__fish_baton_using_subcommand fuzz" -l cpus -d 'Processors of the machine; hostile tasks and their victims are spread over them' -r
complete -c baton -n "__fish_baton_using_subcommand fuzz" -l without -d 'Technique to switch off, by its name in kernel/src/techniques.rs (repeatable)' -r
complete -c baton -n "__fish_baton_using_subcommand fuzz" -l replay -d 'Show the guest\'s whole console: what led to a violation, call by call'
complete -c baton -n "__fish_baton_using_subcommand fuzz" -l coverage -d 'Count which lines of the kernel are reached, steer by it, and list the rest'
complete -c baton -n "__fish_baton_using_subcommand fuzz" -l tests -d 'Coverage: run the tests in the emulator, too'
complete -c baton -n "__fish_baton_using_subcommand fuzz" -l system -d 'Let the hostile loose on the default system with its real servers, not on the kernel alone'
complete -c baton -n "__fish_baton_using_subcommand fuzz" -l exhaust -d 'Instead: tasks that take all they can get, one kind of thing at a time'
complete -c baton -n "__fish_baton_using_subcommand fuzz" -l parallel -d 'Let them run at once instead of in turns: such a run does not repeat'
complete -c baton -n "__fish_baton_using_subcommand fuzz" -s h -l help -d 'Print help'
complete -c baton -n "__fish_baton_using_subcommand new" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c baton -n "__fish_baton_using_subcommand doc" -l book -d 'Only the documents, not what the compiler says of the libraries'
complete -c baton -n "__fish_baton_using_subcommand doc" -s h -l help -d 'Print help'
complete -c baton -n "__fish_baton_using_subcommand sdk" -s o -l output -d 'Folder to write it to: an empty one, or an SDK that is to be renewed' -r -F
complete -c baton -n "__fish_baton_using_subcommand sdk" -s h -l help -d 'Print help'
complete -c baton -n "__fish_baton_using_subcommand lint" -l accept -d 'Instead: make help, completion and manual page anew (xtask/help)'
complete -c baton -n "__fish_baton_using_subcommand lint" -s h -l help -d 'Print help'
complete -c baton -n "__fish_baton_using_subcommand idl" -l messages -d 'Say which message each function is, instead of printing stubs'
complete -c baton -n "__fish_baton_using_subcommand idl" -l c -d 'Print stubs in C (one header for the whole package) instead of Rust'
complete -c baton -n "__fish_baton_using_subcommand idl" -l accept -d 'Make the checked-in stubs of the system\'s interfaces anew'
complete -c baton -n "__fish_baton_using_subcommand idl" -s h -l help -d 'Print help'
complete -c baton -n "__fish_baton_using_subcommand completion" -s h -l help -d 'Print help'
