// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes the console UART, the known kinds of UART, and the boot argument that names a UART.

use crate::Region;
use crate::claims::{END, Unfit};

/// The console UART.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uart {
    /// The UART's programming model.
    pub kind: UartKind,
    /// Physical address of the UART's registers.
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
    /// i.MX UART.
    Imx,
    /// Low-power UART of i.MX and Layerscape, in its 32-bit form.
    Lpuart {
        /// Offset of BAUD, the first register that all forms have.
        offset: u8,
    },
    /// Qualcomm GENI: a serial engine in UART mode.
    Geni,
    /// First UART of a Marvell Armada 3700.
    Armada3700,
}

/// A 16550 with registers of 4 bytes.
const WIDE_16550: UartKind = UartKind::Ns16550 { shift: 2, width: 4 };
/// A 16550 with registers of one byte.
const NS16550: UartKind = UartKind::Ns16550 { shift: 0, width: 1 };

/// Programming models by `compatible`, with a 16550's default form. Our own trees use the first
/// name of each kind.
const COMPATIBLE: &[(&str, UartKind)] = &[
    ("arm,pl011", UartKind::Pl011),
    ("arm,sbsa-uart", UartKind::Pl011),
    ("ns16550a", NS16550),
    ("ns16550", NS16550),
    ("ns16450", NS16550),
    ("ns8250", NS16550),
    ("snps,dw-apb-uart", NS16550),
    // The mini UART.
    ("brcm,bcm2835-aux-uart", WIDE_16550),
    ("ti,am654-uart", WIDE_16550),
    ("ti,am4372-uart", WIDE_16550),
    ("ti,am3352-uart", WIDE_16550),
    ("ti,omap4-uart", WIDE_16550),
    ("mediatek,mt6577-uart", WIDE_16550),
    ("nvidia,tegra20-uart", WIDE_16550),
    ("mrvl,mmp-uart", WIDE_16550),
    ("intel,xscale-uart", WIDE_16550),
    ("fsl,imx6q-uart", UartKind::Imx),
    ("fsl,imx21-uart", UartKind::Imx),
    ("fsl,ls1028a-lpuart", UartKind::Lpuart { offset: 0 }),
    ("fsl,imx7ulp-lpuart", UartKind::Lpuart { offset: 0x10 }),
    ("fsl,imx8ulp-lpuart", UartKind::Lpuart { offset: 0x10 }),
    ("fsl,imx8qxp-lpuart", UartKind::Lpuart { offset: 0x10 }),
    ("fsl,imxrt1050-lpuart", UartKind::Lpuart { offset: 0x10 }),
    ("qcom,geni-debug-uart", UartKind::Geni),
    ("qcom,geni-uart", UartKind::Geni),
    ("marvell,armada-3700-uart", UartKind::Armada3700),
];

impl UartKind {
    /// Returns the model of a node that is compatible with `name` and has these `reg-shift` and
    /// `reg-io-width`.
    #[must_use]
    pub fn of(name: &[u8], shift: Option<u32>, width: Option<u32>) -> Option<Self> {
        let mut known = COMPATIBLE.iter();
        let (_, kind) = known.find(|(known, _)| known.as_bytes() == name)?;
        let Self::Ns16550 {
            shift: usual,
            width: wide,
        } = *kind
        else {
            return Some(*kind);
        };
        let shift = shift.unwrap_or(usual.into());
        let width = width.unwrap_or(wide.into());
        // Other forms are unknown, and writes would go to wrong addresses.
        let known = matches!((shift, width), (0..=4, 1) | (2..=4, 4));
        known.then_some(Self::Ns16550 {
            shift: shift as u8,
            width: width as u8,
        })
    }

    /// Returns the `compatible` of a node of this model.
    pub(crate) fn compatible(self) -> &'static str {
        let same = |other: &&(&str, Self)| match (self, other.1) {
            (Self::Ns16550 { .. }, Self::Ns16550 { .. }) => true,
            (kind, other) => kind == other,
        };
        COMPATIBLE.iter().find(same).map_or("", |(name, _)| name)
    }

    /// Returns the bytes from the first register to the end of the last register in use, and the bytes of an
    /// access.
    const fn register_extent(self) -> (u64, u64) {
        match self {
            Self::Pl011 => (0x1000, 4),
            Self::Ns16550 { shift, width } => (8 << shift, width as u64),
            Self::Imx => (0xb8, 4),
            Self::Lpuart { offset } => (offset as u64 + 0x10, 4),
            Self::Geni => (0x704, 4),
            Self::Armada3700 => (0x10, 4),
        }
    }

    /// Returns the alignment of the model's registers, in bytes.
    #[must_use]
    pub const fn alignment(self) -> u64 {
        self.register_extent().1
    }
}

impl Uart {
    /// Returns the block of the UART's registers.
    #[must_use]
    pub const fn registers(&self) -> Region {
        Region {
            base: self.base,
            size: self.kind.register_extent().0,
        }
    }
}

/// A UART named by the boot arguments, for machines whose description has no UART or a wrong one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A UART at an address, ready for use.
    Ready(Uart),
    /// A 16550 on PCI with its registers in I/O space. Firmware may not have assigned it an
    /// address.
    Pci {
        /// Physical address of the function's configuration space.
        configuration: u64,
        /// Physical address of the bridge's window to I/O space.
        window: u64,
    },
}

impl Named {
    /// Reads the value of the boot argument `rouse.uart`: `pl011,ADDRESS`, likewise `imx`, `geni`,
    /// `armada3700`; `lpuart,ADDRESS[,OFFSET]` with the offset of BAUD, 16 by default;
    /// `16550,ADDRESS[,SHIFT[,WIDTH]]`, where shift 0 and width 1 are the defaults; or
    /// `pci,CONFIGURATION,WINDOW`. `None` if it is invalid: there is no console yet on which to
    /// report that.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let mut parts = value.split(',');
        let kind = parts.next()?;
        let base = parse_address(parts.next()?)?;
        let kind = match kind {
            "pl011" => UartKind::Pl011,
            "imx" => UartKind::Imx,
            "geni" => UartKind::Geni,
            "armada3700" => UartKind::Armada3700,
            "lpuart" => UartKind::Lpuart {
                offset: match parts.next() {
                    Some(offset) => offset
                        .parse()
                        .ok()
                        .filter(|offset| matches!(offset, 0 | 16))?,
                    None => 16,
                },
            },
            "16550" => parse_16550(parts.next(), parts.next())?,
            "pci" => {
                let window = parse_address(parts.next()?)?;
                let named = Self::Pci {
                    configuration: base,
                    window,
                };
                return parts.next().is_none().then_some(named);
            }
            _ => return None,
        };
        let uart = Uart { kind, base };
        let named = Unfit::check_region(uart.registers(), kind.alignment(), END, &[])
            .is_none()
            .then_some(Self::Ready(uart))?;
        parts.next().is_none().then_some(named)
    }
}

fn parse_16550(shift: Option<&str>, width: Option<&str>) -> Option<UartKind> {
    let number = |text: Option<&str>, default| match text {
        Some(text) => text.parse::<u8>().ok(),
        None => Some(default),
    };
    Some(UartKind::Ns16550 {
        shift: number(shift, 0).filter(|shift| *shift <= 4)?,
        width: number(width, 1).filter(|width| matches!(width, 1 | 4))?,
    })
}

fn parse_address(text: &str) -> Option<u64> {
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
        let lpuart = |offset| ready(UartKind::Lpuart { offset }, 0x5a06_0000);
        assert_eq!(Named::parse("lpuart,0x5a060000"), lpuart(16));
        assert_eq!(Named::parse("lpuart,0x5a060000,0"), lpuart(0));
        assert_eq!(
            Named::parse("imx,0x30890000"),
            ready(UartKind::Imx, 0x3089_0000)
        );
        let pci = Named::Pci {
            configuration: 0x40_1000_8000,
            window: 0x3eff_0000,
        };
        assert_eq!(Named::parse("pci,0x4010008000,0x3eff0000"), Some(pci));
    }

    #[test]
    fn the_form_of_a_node_goes_before_that_of_its_name() {
        let of = |name: &str, shift, width| UartKind::of(name.as_bytes(), shift, width);
        let ns16550 = |shift, width| Some(UartKind::Ns16550 { shift, width });
        assert_eq!(of("ti,am654-uart", None, None), ns16550(2, 4));
        assert_eq!(of("snps,dw-apb-uart", Some(2), None), ns16550(2, 1));
        assert_eq!(of("snps,dw-apb-uart", Some(2), Some(4)), ns16550(2, 4));
        assert_eq!(of("ns16550a", Some(5), None), None);
        assert_eq!(of("ns16550a", None, Some(2)), None);
        assert_eq!(
            of("qcom,geni-debug-uart", Some(9), Some(9)),
            Some(UartKind::Geni)
        );
        assert_eq!(of("arm,pl01", None, None), None);
        for (name, kind) in COMPATIBLE {
            let own = kind.compatible().as_bytes();
            let again = of(name, None, None).unwrap();
            assert_eq!(again, *kind, "{name}");
            assert!(UartKind::of(own, None, None).is_some(), "{name}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_not_taken() {
        for value in ["", "pl011", "pl011,", "pl011,x", "pl012,1", "pl011,1,2"] {
            assert_eq!(Named::parse(value), None, "{value}");
        }
        for value in ["16550,1,5", "16550,1,0,2", "16550,1,0,1,0", "16550,1,,"] {
            assert_eq!(Named::parse(value), None, "{value}");
        }
        // Addresses that no UART can have.
        for value in [
            "pl011,2",
            "pl011,0",
            "16550,2,2,4",
            "imx,0x1000000000000",
            "geni,6",
        ] {
            assert_eq!(Named::parse(value), None, "{value}");
        }
        for value in ["lpuart,0x1000,4", "lpuart,0x1000,16,0", "imx,0x1000,1"] {
            assert_eq!(Named::parse(value), None, "{value}");
        }
        for value in ["pci", "pci,1", "pci,1,x", "pci,1,2,3"] {
            assert_eq!(Named::parse(value), None, "{value}");
        }
    }
}
