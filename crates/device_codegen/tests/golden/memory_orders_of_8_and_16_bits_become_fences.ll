; As those of 32 and 64 bits. Loads and stores of any width are volatile ones.

define void @kernel(ptr %p, i8 %b, i16 %h) section ".nvvm.kernel" {
start:
  %both = atomicrmw add ptr %p, i8 %b acq_rel, align 1
  %before = atomicrmw add ptr %p, i16 %h release, align 2
  %after = cmpxchg ptr %p, i8 %b, i8 1 acquire monotonic, align 1
  %total = atomicrmw xchg ptr %p, i16 %h seq_cst, align 2
  %flag = load atomic i8, ptr %p acquire, align 1
  store atomic i8 %flag, ptr %p release, align 1
  %half = load atomic i16, ptr %p monotonic, align 2
  store atomic i16 %half, ptr %p seq_cst, align 2
  ret void
}
