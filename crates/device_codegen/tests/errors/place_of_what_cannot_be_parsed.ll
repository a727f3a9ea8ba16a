define void @kernel() section ".nvvm.kernel" !dbg !0 {
start:
  %r = frobnicate i32 1, !dbg !3
  ret void
}

!0 = distinct !DISubprogram(name: "kernel", file: !2, line: 3)
!2 = !DIFile(filename: "src/lib.rs", directory: "")
!3 = !DILocation(line: 5, column: 9, scope: !0)
