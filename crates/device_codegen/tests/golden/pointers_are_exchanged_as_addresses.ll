; `AtomicPtr`.

define void @kernel(ptr %p, ptr %new) section ".nvvm.kernel" {
start:
  %old = atomicrmw xchg ptr %p, ptr %new monotonic, align 8
  %pair = cmpxchg ptr %p, ptr %old, ptr %new monotonic monotonic, align 8
  %seen = extractvalue { ptr, i1 } %pair, 0
  store ptr %seen, ptr %p, align 8
  ret void
}
