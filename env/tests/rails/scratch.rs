use dynamiccl_env::rails::*;
fn run(job:&Job, d: Decision, n:usize)->f64{
  let calm=Weather::calm(&job.graph,&job.profile);
  let mut r=Run::new(job,calm.clone()); let mut t=0.0;
  for i in 0..n { while r.next().is_some(){ r.answer(d);} let e=r.turn(calm.clone()); if i==n-1 {t=e.length_us;} }
  t
}
#[test] fn s(){
 for (pp,mb) in [(2,2),(2,4),(3,3),(4,4),(4,8),(8,8),(8,16),(16,16),(16,32)] {
  let j=Job::paper(pp,2,mb).unwrap();
  let t0=run(&j,Decision::RULE,3);
  print!("pp {pp} mb {mb} prof {:.4} t0 {:.4} windows {} reqs {} ops {}",j.profile.length_us/1e6,t0/1e6,j.profile.windows.len(),j.profile.requests.len(),j.graph.ops.len());
  for ms in [25.0,100.0,500.0] { let k=j.with_delay(ms*1e3);
   print!(" | {ms}: d {:.3} p {:.3} split {:.3}",100.0*(run(&k,Decision::DEMAND,3)/t0-1.0),100.0*(run(&k,Decision::RULE,3)/t0-1.0),100.0*(run(&k,Decision::SPLIT,3)/t0-1.0)); }
  println!();
  if pp==8&&mb==8 { for r in &j.profile.requests { let c=j.graph.call(r.ops[0] as usize).unwrap(); print!("{:?}{:?} ",c.collective,c.stages);} println!(); }
 }
}
