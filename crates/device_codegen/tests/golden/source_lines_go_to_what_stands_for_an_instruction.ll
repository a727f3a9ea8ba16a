; The vote becomes three instructions and the saturating sum several; all are in the line of the one that they stand for.
; The location of the sum goes through a block and a macro's file, and through a call that was inlined.

define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" !dbg !4 {
start:
  %all = call i32 @__nvvm_warp_vote_all(i32 -1, i32 %a), !dbg !7
  %sum = call i32 @llvm.uadd.sat.i32(i32 %all, i32 %a), !dbg !11
  %place = getelementptr inbounds i8, ptr %out, i64 4, !dbg !12
  store i32 %sum, ptr %place, align 4, !dbg !12
  %other = call i32 @helper(i32 %sum), !dbg !13
  store i32 %other, ptr %out, align 4
  ret void, !dbg !14
}

define internal i32 @helper(i32 %a) noinline !dbg !15 {
start:
  %b = mul i32 %a, %a, !dbg !16
  ret i32 %b, !dbg !16
}

declare i32 @__nvvm_warp_vote_all(i32, i32)

declare i32 @llvm.uadd.sat.i32(i32, i32)

!llvm.module.flags = !{!0}
!llvm.dbg.cu = !{!1}

!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !DICompileUnit(language: DW_LANG_Rust, file: !2, producer: "rustc", isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly, splitDebugInlining: false, nameTableKind: None)
!2 = !DIFile(filename: "src/lib.rs/@/unit", directory: "")
!3 = !DIFile(filename: "src/lib.rs", directory: "", checksumkind: CSK_MD5, checksum: "776d5ccd27852aef12d5653dbd39f526")
!4 = distinct !DISubprogram(name: "kernel", scope: !17, file: !3, line: 3, type: !5, scopeLine: 4, flags: DIFlagPrototyped, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !1, templateParams: !6)
!5 = !DISubroutineType(types: !6)
!6 = !{}
!7 = !DILocation(line: 5, column: 9, scope: !4)
!8 = distinct !DISubprogram(name: "add<u32>", linkageName: "_ZN3lib3add17h0123456789abcdefE", scope: !17, file: !3, line: 20, type: !5, scopeLine: 20, flags: DIFlagPrototyped, spFlags: DISPFlagLocalToUnit | DISPFlagDefinition | DISPFlagOptimized, unit: !1, templateParams: !6)
!9 = distinct !DILexicalBlock(scope: !8, file: !3, line: 21, column: 5)
!10 = !DILexicalBlockFile(scope: !9, file: !18, discriminator: 0)
!11 = !DILocation(line: 90, column: 17, scope: !10, inlinedAt: !19)
!12 = !DILocation(line: 7, column: 5, scope: !4)
!13 = !DILocation(line: 8, scope: !4)
!14 = !DILocation(line: 0, scope: !4)
!15 = distinct !DISubprogram(name: "helper", linkageName: "helper", scope: !17, file: !3, line: 30, type: !5, scopeLine: 30, spFlags: DISPFlagDefinition, unit: !1)
!16 = !DILocation(line: 31, column: 5, scope: !15)
!17 = !DINamespace(name: "lib", scope: null)
!18 = !DIFile(filename: "/rustc/0123/library/core/src/num/uint_macros.rs", directory: "")
!19 = distinct !DILocation(line: 6, column: 9, scope: !4)
