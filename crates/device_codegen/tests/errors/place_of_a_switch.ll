define void @kernel(i32 %a) section ".nvvm.kernel" !dbg !0 {
start:
  switch i32 %missing, label %end [
    i32 0, label %end
    i32 2, label %end
  ], !dbg !3

end:
  ret void
}

!0 = distinct !DISubprogram(name: "kernel", file: !2, line: 3)
!2 = !DIFile(filename: "src/lib.rs", directory: "")
!3 = !DILocation(line: 5, column: 9, scope: !0)
