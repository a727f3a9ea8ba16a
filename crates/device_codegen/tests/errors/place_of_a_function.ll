define i32 @kernel() section ".nvvm.kernel" !dbg !0 {
start:
  ret i32 1
}

!0 = distinct !DISubprogram(name: "kernel", file: !2, line: 3)
!2 = !DIFile(filename: "src/lib.rs", directory: "")
