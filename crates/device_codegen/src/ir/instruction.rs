//! Instructions and terminators.

use super::{
    Attachments, Attribute, AttributeArgument, BlockId, CastOperation, Constant, FunctionType,
    LocalId, Symbol, Type,
};

/// A local value or a constant; its type is known from where it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Local(LocalId),
    Constant(Constant),
    /// `metadata !7`, an argument of an intrinsic that is not kept in device code.
    Metadata,
}

/// A value with its type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Operand {
    pub(crate) ty: Type,
    pub(crate) value: Value,
}

/// What an instruction computes, with the line of the IR it came from.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    pub(crate) result: Option<LocalId>,
    pub(crate) operation: Operation,
    pub(crate) metadata: Attachments,
    /// Where it comes from in the Rust source: a location of the line tables.
    pub(crate) source: Option<u32>,
    pub(crate) line: u32,
}

/// How a block ends.
#[derive(Clone, Debug)]
pub(crate) struct Terminator {
    pub(crate) kind: TerminatorKind,
    pub(crate) metadata: Attachments,
    pub(crate) source: Option<u32>,
    pub(crate) line: u32,
}

#[derive(Clone, Debug)]
pub(crate) enum TerminatorKind {
    Return(Option<Operand>),
    Branch(BlockId),
    ConditionalBranch {
        condition: Value,
        then: BlockId,
        otherwise: BlockId,
    },
    Switch {
        on: Operand,
        default: BlockId,
        cases: Vec<(Constant, BlockId)>,
    },
    Unreachable,
}

/// Memory order of an atomic access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryOrder {
    Unordered,
    Monotonic,
    Acquire,
    Release,
    AcquireRelease,
    SequentiallyConsistent,
}

#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// `add`, `fmul`, `shl`, ... with flags such as `nuw`, `disjoint`, `contract`.
    Binary {
        operation: String,
        flags: Vec<String>,
        ty: Type,
        left: Value,
        right: Value,
    },
    FloatNegate {
        flags: Vec<String>,
        operand: Operand,
    },
    Freeze(Operand),
    Cast {
        operation: CastOperation,
        flags: Vec<String>,
        from: Operand,
        to: Type,
    },
    /// `icmp` and `fcmp`.
    Compare {
        float: bool,
        flags: Vec<String>,
        predicate: String,
        ty: Type,
        left: Value,
        right: Value,
    },
    Select {
        flags: Vec<String>,
        condition: Operand,
        ty: Type,
        then: Value,
        otherwise: Value,
    },
    Phi {
        flags: Vec<String>,
        ty: Type,
        incoming: Vec<(Value, BlockId)>,
    },
    Allocate {
        ty: Type,
        count: Option<Operand>,
        align: Option<u64>,
    },
    Load {
        ty: Type,
        pointer: Operand,
        align: Option<u64>,
        volatile: bool,
        order: Option<MemoryOrder>,
    },
    Store {
        value: Operand,
        pointer: Operand,
        align: Option<u64>,
        volatile: bool,
        order: Option<MemoryOrder>,
    },
    ElementPointer {
        flags: Vec<String>,
        source: Type,
        base: Operand,
        indices: Vec<Operand>,
    },
    Call(Box<Call>),
    AtomicUpdate {
        operation: String,
        volatile: bool,
        pointer: Operand,
        operand: Operand,
        order: MemoryOrder,
    },
    CompareExchange {
        weak: bool,
        volatile: bool,
        pointer: Operand,
        expected: Operand,
        replacement: Operand,
        success: MemoryOrder,
        failure: MemoryOrder,
    },
    Fence {
        /// `syncscope("singlethread")`: for the compiler only.
        single_thread: bool,
    },
    ExtractValue {
        aggregate: Operand,
        indices: Vec<u64>,
    },
    InsertValue {
        aggregate: Operand,
        element: Operand,
        indices: Vec<u64>,
    },
    ExtractElement {
        vector: Operand,
        index: Operand,
    },
    InsertElement {
        vector: Operand,
        element: Operand,
        index: Operand,
    },
    ShuffleVector {
        left: Operand,
        right: Operand,
        mask: Operand,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) flags: Vec<String>,
    pub(crate) callee: Callee,
    pub(crate) ty: FunctionType,
    pub(crate) arguments: Vec<Value>,
    /// One list per argument.
    pub(crate) argument_attributes: Vec<Vec<Attribute>>,
    pub(crate) attributes: Vec<Attribute>,
}

#[derive(Clone, Debug)]
pub(crate) enum Callee {
    Symbol(Symbol),
    Pointer(Value),
    Assembly(InlineAssembly),
}

/// `asm sideeffect inteldialect "text", "constraints"`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InlineAssembly {
    pub(crate) side_effect: bool,
    pub(crate) text: Vec<u8>,
    pub(crate) constraints: String,
}

impl MemoryOrder {
    const NAMES: [(&'static str, MemoryOrder); 6] = [
        ("unordered", MemoryOrder::Unordered),
        ("monotonic", MemoryOrder::Monotonic),
        ("acquire", MemoryOrder::Acquire),
        ("release", MemoryOrder::Release),
        ("acq_rel", MemoryOrder::AcquireRelease),
        ("seq_cst", MemoryOrder::SequentiallyConsistent),
    ];

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, order)| *order)
    }

    /// Later accesses stay behind it.
    pub(crate) fn acquires(self) -> bool {
        matches!(
            self,
            MemoryOrder::Acquire
                | MemoryOrder::AcquireRelease
                | MemoryOrder::SequentiallyConsistent
        )
    }

    /// Earlier accesses stay before it.
    pub(crate) fn releases(self) -> bool {
        matches!(
            self,
            MemoryOrder::Release
                | MemoryOrder::AcquireRelease
                | MemoryOrder::SequentiallyConsistent
        )
    }
}

impl Value {
    pub(crate) fn integer(value: i128) -> Self {
        Value::Constant(Constant::Integer(value))
    }

    pub(crate) fn as_integer(&self) -> Option<i128> {
        match self {
            Value::Constant(constant) => constant.as_integer(),
            _ => None,
        }
    }
}

impl Operand {
    pub(crate) fn new(ty: Type, value: Value) -> Self {
        Self { ty, value }
    }
}

impl Instruction {
    /// An instruction without metadata.
    pub(crate) fn new(
        result: Option<LocalId>,
        operation: Operation,
        source: Option<u32>,
        line: u32,
    ) -> Self {
        Self {
            result,
            operation,
            metadata: Vec::new(),
            source,
            line,
        }
    }
}

impl Terminator {
    pub(crate) fn unreachable(line: u32) -> Self {
        Self {
            kind: TerminatorKind::Unreachable,
            metadata: Vec::new(),
            source: None,
            line,
        }
    }
}

impl Operation {
    pub(crate) fn cast(operation: CastOperation, from: Operand, to: Type) -> Self {
        Operation::Cast {
            operation,
            flags: Vec::new(),
            from,
            to,
        }
    }

    /// A call of a function by its name.
    pub(crate) fn intrinsic(name: &str, result: &Type, arguments: &[(&Type, &Value)]) -> Self {
        let ty = FunctionType {
            result: result.clone(),
            parameters: arguments.iter().map(|(ty, _)| (*ty).clone()).collect(),
        };
        let values = arguments.iter().map(|(_, value)| (*value).clone());
        let callee = Callee::Symbol(name.into());
        Operation::Call(Box::new(Call::plain(callee, ty, values.collect())))
    }
}

impl Call {
    /// A call without attributes or flags.
    pub(crate) fn plain(callee: Callee, ty: FunctionType, arguments: Vec<Value>) -> Self {
        Self {
            flags: Vec::new(),
            callee,
            argument_attributes: vec![Vec::new(); arguments.len()],
            ty,
            arguments,
            attributes: Vec::new(),
        }
    }

    /// The alignment that is promised of an argument, in bytes.
    pub(crate) fn align_of(&self, argument: usize) -> u64 {
        let attributes = self.argument_attributes.get(argument);
        let mut attributes = attributes.into_iter().flatten();
        let align = attributes.find(|attribute| attribute.name == "align");
        match align.and_then(|align| align.argument.as_ref()) {
            Some(AttributeArgument::Number(align)) => *align,
            _ => 1,
        }
    }

    /// The symbol that it calls, unless it calls through a pointer or is inline assembly.
    pub(crate) fn symbol(&self) -> Option<&Symbol> {
        match &self.callee {
            Callee::Symbol(symbol) => Some(symbol),
            _ => None,
        }
    }
}
