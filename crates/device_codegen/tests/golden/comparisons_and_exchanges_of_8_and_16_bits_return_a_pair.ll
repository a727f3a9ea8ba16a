define void @kernel(ptr %p, i8 %b, i16 %h) section ".nvvm.kernel" {
start:
  %pair = cmpxchg ptr %p, i8 %b, i8 1 monotonic monotonic, align 1
  %old = extractvalue { i8, i1 } %pair, 0
  %done = extractvalue { i8, i1 } %pair, 1
  %number = zext i1 %done to i8
  store i8 %old, ptr %p, align 1
  store i8 %number, ptr %p, align 1
  %wide = cmpxchg weak ptr %p, i16 %h, i16 1 monotonic monotonic, align 2
  %wide.old = extractvalue { i16, i1 } %wide, 0
  store i16 %wide.old, ptr %p, align 2
  ret void
}
