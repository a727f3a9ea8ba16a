; One function for each operation and width, however often it is called.

define void @kernel(ptr %p, i8 %b, i16 %h) section ".nvvm.kernel" {
start:
  %b0 = atomicrmw xchg ptr %p, i8 %b monotonic, align 1
  %h0 = atomicrmw xchg ptr %p, i16 %h monotonic, align 2
  %b1 = atomicrmw add ptr %p, i8 %b monotonic, align 1
  %h1 = atomicrmw add ptr %p, i16 %h monotonic, align 2
  %b2 = atomicrmw sub ptr %p, i8 %b monotonic, align 1
  %h2 = atomicrmw sub ptr %p, i16 %h monotonic, align 2
  %b3 = atomicrmw and ptr %p, i8 %b monotonic, align 1
  %h3 = atomicrmw and ptr %p, i16 %h monotonic, align 2
  %b4 = atomicrmw or ptr %p, i8 %b monotonic, align 1
  %h4 = atomicrmw or ptr %p, i16 %h monotonic, align 2
  %b5 = atomicrmw xor ptr %p, i8 %b monotonic, align 1
  %h5 = atomicrmw xor ptr %p, i16 %h monotonic, align 2
  %b6 = atomicrmw nand ptr %p, i8 %b monotonic, align 1
  %h6 = atomicrmw nand ptr %p, i16 %h monotonic, align 2
  %b7 = atomicrmw max ptr %p, i8 %b monotonic, align 1
  %h7 = atomicrmw max ptr %p, i16 %h monotonic, align 2
  %b8 = atomicrmw min ptr %p, i8 %b monotonic, align 1
  %h8 = atomicrmw min ptr %p, i16 %h monotonic, align 2
  %b9 = atomicrmw umax ptr %p, i8 %b monotonic, align 1
  %h9 = atomicrmw umax ptr %p, i16 %h monotonic, align 2
  %b10 = atomicrmw umin ptr %p, i8 %b monotonic, align 1
  %h10 = atomicrmw umin ptr %p, i16 %h monotonic, align 2
  %again = atomicrmw add ptr %p, i8 %b monotonic, align 1
  store i8 %again, ptr %p, align 1
  ret void
}
