// SPDX-License-Identifier: MIT OR Apache-2.0
//! The console UART, and naming one in the boot arguments.

/// The console UART.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uart {
    /// Its programming model.
    pub kind: UartKind,
    /// Physical address of its registers.
    pub base: u64,
}

/// Programming model of a UART.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UartKind {
    /// Arm PL011 or SBSA generic UART: 32-bit registers.
    Pl011,
    /// 16550: registers `1 << shift` bytes apart, accessed `width` bytes wide (1 or 4).
    Ns16550 {
        /// Binary logarithm of the distance between registers, in bytes.
        shift: u8,
        /// Access width in bytes.
        width: u8,
    },
}

/// A UART that the boot arguments name, for machines whose description names none,
/// or a wrong one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// At an address, ready to be used.
    Ready(Uart),
    /// A 16550 on PCI with its registers in I/O space, that firmware may not
    /// have given an address.
    Pci {
        /// Physical address of the function's configuration space.
        configuration: u64,
        /// Physical address of the bridge's window to I/O space.
        window: u64,
    },
}

impl Named {
    /// Reads the value of the boot argument `rouse.uart`: `pl011,ADDRESS`,
    /// `16550,ADDRESS[,SHIFT[,WIDTH]]`, where shift 0 and width 1 are the
    /// defaults, or `pci,CONFIGURATION,WINDOW`. `None` if it makes no sense: there is
    /// no console yet to say so.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let mut parts = value.split(',');
        let kind = parts.next()?;
        let base = address(parts.next()?)?;
        let named = match kind {
            "pl011" => Self::Ready(Uart {
                kind: UartKind::Pl011,
                base,
            }),
            "16550" => {
                let kind = ns16550(parts.next(), parts.next())?;
                Self::Ready(Uart { kind, base })
            }
            "pci" => Self::Pci {
                configuration: base,
                window: address(parts.next()?)?,
            },
            _ => return None,
        };
        parts.next().is_none().then_some(named)
    }
}

fn ns16550(shift: Option<&str>, width: Option<&str>) -> Option<UartKind> {
    let number = |text: Option<&str>, default| match text {
        Some(text) => text.parse::<u8>().ok(),
        None => Some(default),
    };
    Some(UartKind::Ns16550 {
        shift: number(shift, 0).filter(|shift| *shift <= 4)?,
        width: number(width, 1).filter(|width| matches!(width, 1 | 4))?,
    })
}

fn address(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_uart_is_taken() {
        let ready = |kind, base| Some(Named::Ready(Uart { kind, base }));
        assert_eq!(
            Named::parse("pl011,0x9000000"),
            ready(UartKind::Pl011, 0x900_0000)
        );
        let ns16550 = |shift, width| ready(UartKind::Ns16550 { shift, width }, 0xe2f0_0000);
        assert_eq!(Named::parse("16550,0xe2f00000"), ns16550(0, 1));
        assert_eq!(Named::parse("16550,0xe2f00000,2,4"), ns16550(2, 4));
        let pci = Named::Pci {
            configuration: 0x40_1000_8000,
            window: 0x3eff_0000,
        };
        assert_eq!(Named::parse("pci,0x4010008000,0x3eff0000"), Some(pci));
    }

    #[test]
    fn what_makes_no_sense_is_not_taken() {
        for value in ["", "pl011", "pl011,", "pl011,x", "pl012,1", "pl011,1,2"] {
            assert_eq!(Named::parse(value), None, "{value}");
        }
        for value in ["16550,1,5", "16550,1,0,2", "16550,1,0,1,0", "16550,1,,"] {
            assert_eq!(Named::parse(value), None, "{value}");
        }
        for value in ["pci", "pci,1", "pci,1,x", "pci,1,2,3"] {
            assert_eq!(Named::parse(value), None, "{value}");
        }
    }
}
