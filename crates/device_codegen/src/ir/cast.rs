//! Conversions between types, in instructions and in constants.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CastOperation {
    Truncate,
    ZeroExtend,
    SignExtend,
    FloatTruncate,
    FloatExtend,
    FloatToUnsigned,
    FloatToSigned,
    UnsignedToFloat,
    SignedToFloat,
    PointerToInteger,
    IntegerToPointer,
    Bitcast,
    AddressSpaceCast,
}

impl CastOperation {
    const NAMES: [(&'static str, CastOperation); 13] = [
        ("trunc", CastOperation::Truncate),
        ("zext", CastOperation::ZeroExtend),
        ("sext", CastOperation::SignExtend),
        ("fptrunc", CastOperation::FloatTruncate),
        ("fpext", CastOperation::FloatExtend),
        ("fptoui", CastOperation::FloatToUnsigned),
        ("fptosi", CastOperation::FloatToSigned),
        ("uitofp", CastOperation::UnsignedToFloat),
        ("sitofp", CastOperation::SignedToFloat),
        ("ptrtoint", CastOperation::PointerToInteger),
        ("inttoptr", CastOperation::IntegerToPointer),
        ("bitcast", CastOperation::Bitcast),
        ("addrspacecast", CastOperation::AddressSpaceCast),
    ];

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, operation)| *operation)
    }

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(_, operation)| *operation == self)
            .map_or("", |(name, _)| name)
    }
}
