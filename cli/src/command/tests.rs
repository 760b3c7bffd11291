//! Tests of all commands.

use super::commands;

#[test]
fn the_commands_are_well_formed() {
    commands().debug_assert();
}
