define void @kernel() section ".nvvm.kernel" !dbg !0 {
start:
  ret void
}

define void @other() section ".nvvm.kernel" !dbg !0 {
start:
  ret void
}

!0 = distinct !DISubprogram(name: "kernel", file: !1, line: 3)
!1 = !DIFile(filename: "src/lib.rs", directory: "")
