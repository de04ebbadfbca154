// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes in one line where each CPU of a hanging boot is executing.

/// Returns the code locations in `registers`, which QEMU has printed. CPUs at the same location are listed together.
/// The result is empty if no register was read.
pub fn name_places(registers: &[String]) -> String {
    let mut places: Vec<(String, Vec<&str>)> = Vec::new();
    for cpu in registers.chunk_by(|_, next| !next.starts_with("CPU#")) {
        let Some((index, place)) = cpu[0].strip_prefix("CPU#").zip(place_of_cpu(cpu)) else {
            continue;
        };
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, cpus)) => cpus.push(index.trim()),
            None => places.push((place, vec![index.trim()])),
        }
    }
    let places = places.into_iter();
    let places = places.map(|(place, cpus)| format!("; CPU {} in {place}", cpus.join(", ")));
    places.collect()
}

/// Returns the exception level and the address of a CPU's next instruction, with the function's name if it is known.
fn place_of_cpu(cpu: &[String]) -> Option<String> {
    let lines = || cpu.iter().map(|line| line.trim_start());
    let registers = lines().find_map(|line| line.strip_prefix("PC="))?;
    let address = registers.split(" X0").next()?.trim();
    let flags = lines().find_map(|line| line.strip_prefix("PSTATE="))?;
    let level = flags
        .split_whitespace()
        .find(|word| word.starts_with("EL"))?;
    Some(format!("{level} at 0x{address}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_at_one_place_are_named_together() {
        let lines = [
            "CPU#0",
            " PC=ffff800080012340 X00=0000000000000001 X01=0000000000000002",
            "PSTATE=000003c9 ---- EL2h",
            "CPU#1",
            " PC=0000000040000100 <hypervisor: vector+0x0> X00=0000000000000001",
            "PSTATE=000003c5 ---- NS EL1h",
            "CPU#2",
            " PC=ffff800080012340 X00=0000000000000003",
            "PSTATE=000003c9 ---- EL2h",
        ];
        assert_eq!(
            name_places(&lines.map(str::to_owned)),
            "; CPU 0, 2 in EL2h at 0xffff800080012340; CPU 1 in EL1h at 0x0000000040000100 <hypervisor: vector+0x0>"
        );
        for none in [
            &[][..],
            &["the emulator has no monitor to read the registers"],
        ] {
            let lines: Vec<String> = none.iter().map(|line| (*line).to_owned()).collect();
            assert_eq!(name_places(&lines), "");
        }
    }
}
