; for _ in 0..2 { while c { bar; if d { return } } }, unrolled: from the first copy a thread comes to
; the second by way of the first one's header.
define void @kernel(ptr %out) section ".nvvm.kernel" !dbg !0 {
start:
  br label %header
header:
  %first = load volatile i1, ptr %out, align 1
  br i1 %first, label %body, label %header.1
body:
  call void asm sideeffect "barrier.sync 1;", ""(), !dbg !3
  %leaves = load volatile i1, ptr %out, align 1
  br i1 %leaves, label %end, label %header
header.1:
  %second = load volatile i1, ptr %out, align 1
  br i1 %second, label %body.1, label %end
body.1:
  call void asm sideeffect "barrier.sync 1;", ""(), !dbg !3
  %leaves.1 = load volatile i1, ptr %out, align 1
  br i1 %leaves.1, label %end, label %header.1
end:
  ret void
}

!0 = distinct !DISubprogram(name: "kernel", file: !2, line: 3)
!2 = !DIFile(filename: "src/lib.rs", directory: "")
!3 = !DILocation(line: 5, column: 9, scope: !0)
