; Before an access for release, after it for acquire. Atomic loads and stores become volatile.

define void @kernel(ptr %p, i32 %a) section ".nvvm.kernel" {
start:
  %relaxed = atomicrmw add ptr %p, i32 %a monotonic, align 4
  %both = atomicrmw xchg ptr %p, i32 %a acq_rel, align 4
  %before = atomicrmw or ptr %p, i32 %a release, align 4
  %after = atomicrmw umax ptr %p, i32 %a acquire, align 4
  %flag = load atomic i32, ptr %p acquire, align 4
  store atomic i32 %flag, ptr %p release, align 4
  %pair = cmpxchg weak ptr %p, i32 1, i32 2 acquire monotonic, align 4
  %old = extractvalue { i32, i1 } %pair, 0
  store i32 %old, ptr %p, align 4
  %total = load atomic i32, ptr %p seq_cst, align 4
  store atomic i32 %total, ptr %p seq_cst, align 4
  fence seq_cst
  fence syncscope("singlethread") seq_cst
  ret void
}
