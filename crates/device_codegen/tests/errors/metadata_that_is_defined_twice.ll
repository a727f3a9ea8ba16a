define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" !dbg !0 {
start:
  store i32 %a, ptr %out, align 4, !dbg !1
  ret void
}
!5 = !DIFile(filename: "src/lib.rs", directory: "")
!0 = distinct !DISubprogram(name: "kernel", file: !5, line: 3)
!1 = !DILocation(line: 5, column: 9, scope: !0)
!1 = !{i32 1}
