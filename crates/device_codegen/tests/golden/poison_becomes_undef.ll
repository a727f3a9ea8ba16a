; In an operand and inside a constant aggregate.

define void @kernel(ptr %out, i1 %c, i32 %a) section ".nvvm.kernel" {
start:
  %r = select i1 %c, i32 %a, i32 poison
  store i32 %r, ptr %out, align 4
  %pair = insertvalue { i32, i32 } { i32 1, i32 poison }, i32 %a, 1
  %second = extractvalue { i32, i32 } %pair, 1
  store i32 %second, ptr %out, align 4
  ret void
}
