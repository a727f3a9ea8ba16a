; noalias, readonly and align stay: they make loads non-coherent (ld.global.nc).

define void @kernel(ptr noalias noundef nonnull readonly align 4 captures(address, read_provenance) %a.0, i64 noundef range(i64 0, 2305843009213693952) %a.1, ptr noundef writable captures(none) dead_on_unwind initializes((0, 4)) dereferenceable(4) %out) unnamed_addr #0 section ".nvvm.kernel" {
start:
  %v = load float, ptr %a.0, align 4, !noundef !0
  call void @helper(ptr noalias noundef align 4 captures(none) dereferenceable(4) %out, float noundef %v) #1
  ret void
}

define internal void @helper(ptr noalias noundef align 4 captures(none) dereferenceable(4) %out, float noundef %v) unnamed_addr #1 {
start:
  store float %v, ptr %out, align 4
  ret void
}

attributes #0 = { inlinehint nounwind nonlazybind uwtable "probe-stack"="inline-asm" "target-cpu"="x86-64" }
attributes #1 = { noinline nounwind memory(argmem: readwrite) }

!0 = !{}
