define void @kernel(ptr %out) section ".nvvm.kernel" !dbg !0 {
start:
  call void @helper(ptr %out)
  ret void
}

define void @helper(ptr %out) !dbg !1 {
start:
  store i32 1, ptr %out, align 4
  ret void
}

!0 = distinct !DISubprogram(name: "kernel", file: !2, line: 3)
!1 = distinct !DISubprogram(name: "helper", file: !2, line: 9)
!2 = !DIFile(filename: "src/lib.rs", directory: "")
